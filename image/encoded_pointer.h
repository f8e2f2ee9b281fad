// Numbers as unwind tables write them: DW_EH_PE_* and LEB128 (Linux Standard Base Core, "DWARF
// Exception Header Encoding").
#pragma once

#include "base/byte_reader.h"

#include <cstdint>
#include <optional>

namespace image {

// Bits above the 64th are dropped. Throws Failure beyond the end, or after 16 bytes.
uint64_t read_uleb128(base::ByteReader &reader);
int64_t read_sleb128(base::ByteReader &reader);

inline constexpr uint8_t kPointerOmitted = 0xff; // DW_EH_PE_omit

// Reads one pointer; the reader's offset() must be the address of what it reads (pc-relative ones
// count from there). `data_base` is what data-relative ones count from. 0 stays 0 whatever it is
// relative to: that is how an absent pointer is written. nullopt, with the bytes consumed: its value
// is not in the file (indirect), or is relative to something else. Throws Failure beyond the end,
// or for an unknown format, whose length is not known.
std::optional<uint64_t> read_pointer(base::ByteReader &reader, uint8_t encoding,
                                     std::optional<uint64_t> data_base = std::nullopt);

} // namespace image
