// DW_EH_PE_*: the low four bits say how the number is written, the next three what it is relative
// to, the highest that it is the address of the pointer instead of the pointer.
//
// Two readers need it, of .eh_frame and of the language-specific data (.gcc_except_table). LLVM's
// DataExtractor has a function for it (getEncodedPointer) that was refused: it wants a
// DataExtractor over the section, whose end is not known in files without section headers, and it
// ends the program on formats that it does not know.

#include "image/encoded_pointer.h"

#include "base/fail.h"

#include <llvm/BinaryFormat/Dwarf.h>

namespace image {

using namespace llvm::dwarf;

namespace {

constexpr int kLongestLeb = 16; // assemblers pad some, but not without end

struct Leb {
  uint64_t value = 0;
  int bits = 0;
  bool negative = false;
};

Leb read_leb(base::ByteReader &reader) {
  Leb leb;
  for (int count = 0; count < kLongestLeb; count++) {
    auto byte = reader.read<uint8_t>();
    if (leb.bits < 64)
      leb.value |= uint64_t(byte & 0x7f) << leb.bits;
    leb.bits += 7;
    if (byte & 0x80)
      continue;
    leb.negative = byte & 0x40;
    return leb;
  }
  base::fail("the number before offset {} has no end", reader.offset());
}

} // namespace

uint64_t read_uleb128(base::ByteReader &reader) {
  return read_leb(reader).value;
}

int64_t read_sleb128(base::ByteReader &reader) {
  Leb leb = read_leb(reader);
  if (leb.negative && leb.bits < 64)
    leb.value |= ~uint64_t(0) << leb.bits;
  return static_cast<int64_t>(leb.value);
}

std::optional<uint64_t> read_pointer(base::ByteReader &reader, uint8_t encoding,
                                     std::optional<uint64_t> data_base) {
  uint64_t place = reader.offset();
  if ((encoding & 0x70) == DW_EH_PE_aligned) // and absolute
    reader.skip((0 - place) & 7);
  uint64_t value = 0;
  auto signed_value = [](auto number) { return static_cast<uint64_t>(int64_t(number)); };
  switch (encoding & 0x0f) {
  case DW_EH_PE_absptr:
  case DW_EH_PE_udata8:
  case DW_EH_PE_sdata8: value = reader.read<uint64_t>(); break;
  case DW_EH_PE_udata2: value = reader.read<uint16_t>(); break;
  case DW_EH_PE_udata4: value = reader.read<uint32_t>(); break;
  case DW_EH_PE_sdata2: value = signed_value(reader.read<int16_t>()); break;
  case DW_EH_PE_sdata4: value = signed_value(reader.read<int32_t>()); break;
  case DW_EH_PE_uleb128: value = read_uleb128(reader); break;
  case DW_EH_PE_sleb128: value = signed_value(read_sleb128(reader)); break;
  default: base::fail("the pointer at {:#x} has the unknown format {:#x}", place, encoding);
  }
  if (!value)
    return 0;
  if (encoding & DW_EH_PE_indirect)
    return std::nullopt;
  switch (encoding & 0x70) {
  case DW_EH_PE_absptr:
  case DW_EH_PE_aligned: return value;
  case DW_EH_PE_pcrel: return value + place;
  case DW_EH_PE_datarel: return data_base ? std::optional(value + *data_base) : std::nullopt;
  default: return std::nullopt;
  }
}

} // namespace image
