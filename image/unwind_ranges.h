// Where functions begin and end, by the unwind tables (.eh_frame), which stripped files keep.
#pragma once

#include "image/elf_tables.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace image {

struct UnwindCommon { // one common information entry
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint64_t return_register = 16;
  bool is_signal = false; // the kernel returns to its frames, nobody calls them
  // The address of the personality routine, or, with DW_EH_PE_indirect in the encoding, of the word
  // that holds it; 0 if there is none.
  uint64_t personality = 0;
  uint8_t personality_encoding = 0;
  std::span<const std::byte> instructions; // that each of its frames begins with
};

struct UnwindRange {            // one frame description entry
  uint64_t begin = 0, end = 0;  // end exclusive; begin < end
  uint64_t exception_table = 0; // address of the language-specific data; 0 if there is none
  std::shared_ptr<const UnwindCommon> common;
  std::span<const std::byte> instructions; // DW_CFA_*, in the file's bytes
};

// In the order of the file, as it says: entries may overlap, or lie where no code is. Of damaged
// tables what can be read.
std::vector<UnwindRange> unwind_ranges(const ElfTables &tables);

} // namespace image
