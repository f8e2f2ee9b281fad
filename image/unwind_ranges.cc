// .eh_frame: common entries (CIE) that say how to read the frame entries (FDE) that refer to them.
//
//   length   u32; 0xffffffff: u64 follows; 0: terminator
//   id       u32; 0: this is a CIE; else the distance from here back to the FDE's CIE
//   CIE: version u8, augmentation text, code alignment uleb, data alignment sleb,
//        return register (u8 in version 1, else uleb), and if the text begins with z:
//        size uleb, then for each letter L: encoding of the language-specific data's address,
//        P: encoding, personality routine; R: encoding of an FDE's addresses; S, B, G: nothing
//   FDE: begin (encoded), size (same format, never relative), and with z:
//        size uleb, address of the language-specific data (encoded)
// (Linux Standard Base Core, "Exception Frames".) The unwinding instructions behind are handed on unread.
//
// LLVM's reader (DWARFDebugFrame) was refused: it parses every instruction of every entry, ten times
// the work, and gives up at the first entry that it dislikes.
//
// The section is found by its header, or else by PT_GNU_EH_FRAME, whose target begins with a pointer
// to it; then the terminator ends it. Within a section a terminator is only stepped over, because
// linkers leave some of those that crtend.o brings. An entry that is damaged is left out; after
// kManyDamaged of them the rest is not worth the time.

#include "image/unwind_ranges.h"

#include "image/encoded_pointer.h"

#include "base/byte_reader.h"
#include "base/fail.h"

#include <llvm/BinaryFormat/Dwarf.h>

#include <string>
#include <unordered_map>

namespace image {
namespace {

constexpr int kManyDamaged = 1000;
constexpr size_t kLongestAugmentation = 8; // letters; none is there twice
constexpr std::string_view kSource = ".eh_frame";

struct Common {
  bool usable = false;
  bool has_data = false; // z
  uint8_t address_encoding = llvm::dwarf::DW_EH_PE_absptr;
  uint8_t exception_encoding = kPointerOmitted;
  std::shared_ptr<UnwindCommon> facts = std::make_shared<UnwindCommon>();
};

// The personality routine: with DW_EH_PE_indirect, the address of the word that holds its address.
void read_personality(base::ByteReader &reader, UnwindCommon &facts) {
  facts.personality_encoding = reader.read<uint8_t>();
  facts.personality =
      read_pointer(reader, facts.personality_encoding & ~llvm::dwarf::DW_EH_PE_indirect)
          .value_or(0);
}

Common read_common(base::ByteReader reader) {
  Common common;
  uint8_t version = reader.read<uint8_t>();
  if (version != 1 && version != 3)
    return common;
  std::string augmentation;
  while (char letter = reader.read<char>()) {
    augmentation += letter;
    if (augmentation.size() > kLongestAugmentation)
      return common;
  }
  UnwindCommon &facts = *common.facts;
  facts.code_alignment = read_uleb128(reader);
  facts.data_alignment = read_sleb128(reader);
  facts.return_register = version == 1 ? reader.read<uint8_t>() : read_uleb128(reader);
  if (augmentation.empty()) {
    facts.instructions = reader.rest();
    common.usable = true;
    return common;
  }
  if (augmentation.front() != 'z')
    return common;
  common.has_data = true;
  const uint64_t data_bytes = read_uleb128(reader);
  const uint64_t data_begin = reader.offset();
  for (char letter : augmentation)
    switch (letter) {
    case 'L': common.exception_encoding = reader.read<uint8_t>(); break;
    case 'R': common.address_encoding = reader.read<uint8_t>(); break;
    case 'P': read_personality(reader, facts); break;
    case 'S': facts.is_signal = true; break;
    case 'z':
    case 'B':
    case 'G': break;
    default: return common;
    }
  if (const uint64_t read = reader.offset() - data_begin; read < data_bytes)
    reader.skip(data_bytes - read);
  facts.instructions = reader.rest();
  common.usable = true;
  return common;
}

class Frames {
public:
  Frames(std::span<const std::byte> bytes, uint64_t address, bool ends_at_terminator)
      : bytes_(bytes), address_(address), ends_at_terminator_(ends_at_terminator) {}

  std::vector<UnwindRange> read() {
    int damaged = 0;
    base::ByteReader reader(bytes_, kSource, address_);
    while (reader.left() >= 4 && damaged < kManyDamaged) {
      auto entry = next_entry(reader);
      if (!entry)
        break;
      if (entry->left() == 0 && ends_at_terminator_)
        break;
      if (entry->left() < 4)
        continue;
      try {
        read_frame(*entry);
      } catch (const base::Failure &) {
        damaged++;
      }
    }
    return std::move(ranges_);
  }

private:
  // The bytes behind the length of the entry that the reader is at, which goes behind the entry;
  // nullopt if it does not fit.
  static std::optional<base::ByteReader> next_entry(base::ByteReader &reader) {
    if (reader.left() < 4)
      return std::nullopt;
    uint64_t length = reader.read<uint32_t>();
    if (length == 0xffffffff) {
      if (reader.left() < 8)
        return std::nullopt;
      length = reader.read<uint64_t>();
    }
    if (length > reader.left())
      return std::nullopt;
    uint64_t start = reader.offset();
    return base::ByteReader(reader.bytes(length), kSource, start);
  }

  void read_frame(base::ByteReader entry) {
    uint64_t id_address = entry.offset();
    uint32_t distance = entry.read<uint32_t>();
    if (distance == 0) // a CIE is read when the first FDE asks for it
      return;
    const Common &common = common_at(id_address - distance);
    if (!common.usable)
      return;
    auto begin = read_pointer(entry, common.address_encoding);
    auto size = read_pointer(entry, common.address_encoding & 0x0f);
    if (!begin || !size || !*size || *size > UINT64_MAX - *begin)
      return;
    UnwindRange range{*begin, *begin + *size, 0, common.facts, {}};
    // Unwinders look up the address before the one that is returned to: so the entry of what signal handlers
    // return to begins a byte before its code, which is aligned.
    if (common.facts->is_signal && range.begin % 16 == 15 && *size > 1)
      range.begin++;
    if (common.has_data) {
      const uint64_t data_bytes = read_uleb128(entry);
      const uint64_t data_begin = entry.offset();
      if (common.exception_encoding != kPointerOmitted)
        range.exception_table = read_pointer(entry, common.exception_encoding).value_or(0);
      if (const uint64_t read = entry.offset() - data_begin; read < data_bytes)
        entry.skip(data_bytes - read);
    }
    range.instructions = entry.rest();
    ranges_.push_back(range);
  }

  const Common &common_at(uint64_t address) {
    auto [found, is_new] = commons_.try_emplace(address);
    if (!is_new || address < address_ || address - address_ > bytes_.size())
      return found->second;
    base::ByteReader reader(bytes_.subspan(address - address_), kSource, address);
    auto entry = next_entry(reader);
    if (entry && entry->left() >= 4 && entry->read<uint32_t>() == 0)
      found->second = read_common(*entry);
    return found->second;
  }

  std::span<const std::byte> bytes_;
  uint64_t address_;
  bool ends_at_terminator_;
  std::unordered_map<uint64_t, Common> commons_;
  std::vector<UnwindRange> ranges_;
};

} // namespace

std::vector<UnwindRange> unwind_ranges(const ElfTables &tables) {
  if (tables.eh_frame) {
    auto [begin, end] = *tables.eh_frame;
    return Frames(tables.segments.bytes(begin, end - begin), begin, false).read();
  }
  if (!tables.eh_frame_header)
    return {};
  // version u8 (1), encodings u8 of: the pointer, the count and the table behind it, which is a
  // subset of what the frames say
  uint64_t address = *tables.eh_frame_header;
  base::ByteReader reader(tables.segments.bytes_from(address), ".eh_frame_hdr", address);
  try {
    if (reader.read<uint8_t>() != 1)
      return {};
    uint8_t encoding = reader.read<uint8_t>();
    reader.skip(2);
    auto frames = read_pointer(reader, encoding, address);
    if (!frames)
      return {};
    return Frames(tables.segments.bytes_from(*frames), *frames, true).read();
  } catch (const base::Failure &) {
    return {};
  }
}

} // namespace image
