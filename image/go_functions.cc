// Go programs have neither unwind tables nor, stripped, symbols, but their runtime needs the functions
// for its own stack walks: `pclntab`, which begins with a magic number, lies aligned in a segment that
// is not writable or among data that relocations fill.
//
//   magic (4) | 0 0 | quantum | pointer size | functions (8) | files (8) | [text begin (8)] |
//   names (8) | units (8) | files (8) | pcs (8) | functions (8): offsets from the magic
//   at functions: {entry, description} for each, of 4 bytes and relative to the text (Go 1.18 and
//   later), or of 8; at the end the end
//   a description: entry | name (4): offset among the names
//
// Source: Go's src/runtime/symtab.go, `pcHeader`, `functab`, `_func`. Finding the table by its section
// was refused: the name is gone where `sstrip` or a packer was.

#include "image/go_functions.h"

#include "image/symbols.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

namespace image {
namespace {

constexpr uint32_t kGo116 = 0xfffffffa, kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;
constexpr uint64_t kMaxFunctions = 1 << 24, kLongestName = 4096;

template <class T> std::optional<T> at(std::span<const std::byte> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

bool is_header(std::span<const std::byte> bytes, uint64_t offset) {
  auto magic = at<uint32_t>(bytes, offset), rest = at<uint32_t>(bytes, offset + 4);
  return magic && rest && (*magic == kGo116 || *magic == kGo118 || *magic == kGo120) &&
         *rest == 0x08010000;
}

std::string name_at(std::span<const std::byte> bytes, uint64_t offset) {
  std::string name;
  for (auto c = at<char>(bytes, offset); c && *c && name.size() < kLongestName;
       c = at<char>(bytes, ++offset))
    name += *c;
  return name;
}

std::vector<CodeRange> read(std::span<const std::byte> table, uint64_t address,
                            const std::function<std::optional<uint64_t>(uint64_t)> &word) {
  bool relative = *at<uint32_t>(table, 0) != kGo116;
  auto count = at<uint64_t>(table, 8);
  auto text = relative ? word(address + 24) : std::optional<uint64_t>(0);
  uint64_t offsets = relative ? 32 : 24;
  auto names = at<uint64_t>(table, offsets), functions = at<uint64_t>(table, offsets + 32);
  std::vector<CodeRange> found;
  if (!count || !text || !names || !functions || *count > kMaxFunctions)
    return found;
  uint64_t size = relative ? 4 : 8, name_budget = 2 * table.size();
  auto number = [&](uint64_t offset) -> std::optional<uint64_t> {
    if (!relative)
      return at<uint64_t>(table, offset);
    auto small = at<uint32_t>(table, offset);
    return small ? std::optional<uint64_t>(*small) : std::nullopt;
  };
  for (uint64_t i = 0; i < *count; i++) {
    uint64_t row = *functions + i * 2 * size;
    auto entry = number(row), described = number(row + size), next = number(row + 2 * size);
    if (!entry || !described || !next || *next < *entry)
      break;
    CodeRange range{*text + *entry, *text + *next, {}, FoundBy::go};
    auto name = at<int32_t>(table, *functions + *described + size);
    if (name && *name >= 0 && name_budget) {
      range.name = name_at(table, *names + static_cast<uint64_t>(*name));
      name_budget -= std::min<uint64_t>(name_budget, range.name.size() + 1);
    }
    if (range.begin < range.end)
      found.push_back(std::move(range));
  }
  return found;
}

} // namespace

std::vector<CodeRange> go_functions(const Segments &segments,
                                    const std::optional<AddressRange> &relro,
                                    const std::function<std::optional<uint64_t>(uint64_t)> &word,
                                    const std::function<void()> &release) {
  for (const Segment &segment : segments.all()) {
    auto bytes = segments.bytes_from(segment.address);
    uint64_t begin = segment.address, end = begin + bytes.size();
    if (segment.writable &&
        relro) { // variables are not looked through: there may be 100 MB of them
      begin = std::max(begin, relro->begin);
      end = std::min(end, relro->end);
    }
    uint64_t first = begin - segment.address + ((0 - begin) & 15);
    for (uint64_t offset = first; offset + 64 < bytes.size() && segment.address + offset < end;
         offset += 16) {
      if (is_header(bytes, offset))
        if (auto found = read(bytes.subspan(offset), segment.address + offset, word);
            !found.empty())
          return found;
      if ((offset - first) % kReleasedBytes == kReleasedBytes - 16)
        release();
    }
  }
  return {};
}

} // namespace image
