// Reading procedure linkage tables.
//
// The problem: each linker and each hardening option lays the table out in its own way, and section
// headers seldom tell the size of an entry. The idea: every stub ends in a jump through a word, and
// what may stand before that jump is little:
//
//   [endbr64] [mov $n, %r11d] [bnd] jmp *slot(%rip)       GNU ld, gold, lld, mold
//   [endbr64] push $n; [bnd] jmp table                    GNU ld and lld with IBT, in .plt: the n-th
//                                                         jump slot, the real jump is in .plt.sec
// Entries begin at multiples of 8 bytes, take 16, or 8 in a .plt.got without endbr64. What stands
// before the first stub (push word(%rip); jmp *word(%rip)) calls the loader; it is one stub without
// a slot.
//
// Taking the n-th relocation for the n-th stub, as some disassemblers do, was refused: lld and
// -z now put them in other orders, and libc's table has its IRELATIVE ones first.

#include "image/plt_stubs.h"

#include <algorithm>
#include <initializer_list>

namespace image {
namespace {

constexpr uint64_t kEntry = 16, kSmallEntry = 8;

class Code {
public:
  explicit Code(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool skip(std::initializer_list<uint8_t> wanted) {
    if (wanted.size() > bytes_.size() - position_ ||
        !std::equal(wanted.begin(), wanted.end(), bytes_.begin() + position_,
                    [](uint8_t a, std::byte b) { return std::byte(a) == b; }))
      return false;
    position_ += wanted.size();
    return true;
  }
  std::optional<uint32_t> number() {
    Table<uint32_t> word(bytes_.subspan(position_, std::min<size_t>(4, bytes_.size() - position_)));
    if (!word.size())
      return std::nullopt;
    position_ += 4;
    return word[0];
  }
  size_t position() const { return position_; }

private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

std::optional<uint64_t> slot_of_stub(const ElfTables &tables, uint64_t address, uint64_t end) {
  Code code(tables.segments.bytes(address, std::min(kEntry, end - address)));
  code.skip({0xf3, 0x0f, 0x1e, 0xfa});
  if (code.skip({0x68})) {
    auto index = code.number();
    bool jumps = code.skip({0xf2, 0xe9}) || code.skip({0xe9});
    if (!index || !jumps || *index >= tables.jump_slots.size())
      return std::nullopt;
    return tables.jump_slots[*index].r_offset;
  }
  if (code.skip({0x41, 0xbb}) && !code.number())
    return std::nullopt;
  code.skip({0xf2});
  if (!code.skip({0xff, 0x25}))
    return std::nullopt;
  auto distance = code.number();
  if (!distance)
    return std::nullopt;
  return address + code.position() + static_cast<uint64_t>(int64_t(int32_t(*distance)));
}

} // namespace

std::vector<PltStub> plt_stubs(const ElfTables &tables, AddressRange range, uint64_t entry_size) {
  std::vector<PltStub> stubs;
  uint64_t at = range.begin;
  while (at < range.end) {
    auto slot = slot_of_stub(tables, at, range.end);
    if (!slot || !*slot) {
      if (range.end - at <= kSmallEntry)
        break;
      at += kSmallEntry;
      continue;
    }
    if (stubs.empty() && at > range.begin)
      stubs.push_back({range.begin, at, 0});
    uint64_t size = kEntry;
    if (entry_size == kSmallEntry || (entry_size != kEntry && range.end - at > kSmallEntry &&
                                      slot_of_stub(tables, at + kSmallEntry, range.end)))
      size = kSmallEntry;
    uint64_t end = range.end - at < size ? range.end : at + size;
    stubs.push_back({at, end, *slot});
    at = end;
  }
  // Bound now, the table may consist of its beginning alone.
  Code code(tables.segments.bytes(range.begin, std::min(kEntry, range.end - range.begin)));
  if (stubs.empty() && code.skip({0xff, 0x35}))
    stubs.push_back({range.begin, range.end, 0});
  return stubs;
}

} // namespace image
