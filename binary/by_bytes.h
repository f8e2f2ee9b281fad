// What was found out about instructions before, by their bytes.
//
// Half of the instructions of a program have the same bytes as one shortly before, and each is
// decoded several times. To decode one takes ten times as long as to look it up here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace binary {

// The newest instruction of each place that a hash gives.
//
// Its length must be known before an instruction can be looked up: it is taken to be that of the
// last one that began alike. Where it is another, nothing is found, because the length is compared
// with the bytes.
template <class Value> class ByBytes {
public:
  ByBytes() : entries_(kEntries), lengths_(kBegins) {}

  struct Found {
    const Value *value = nullptr; // nullptr: not known
    unsigned length = 0;          // of the instruction
  };
  // Of the instruction that begins at bytes[0].
  Found find(std::span<const std::byte> bytes) const {
    if (bytes.size() <= kMaxLength)
      return {};
    const unsigned length = lengths_[begin_of(bytes)];
    const Bytes wanted = first_of(bytes, length);
    const Entry &entry = entries_[place_of(wanted)];
    return length && entry.bytes == wanted ? Found{&entry.value, length} : Found{};
  }

  // In place of another one. Of the last bytes of a file nothing is kept: then `value` is dropped.
  void put(std::span<const std::byte> bytes, unsigned length, const Value &value) {
    if (bytes.size() <= kMaxLength)
      return;
    lengths_[begin_of(bytes)] = static_cast<uint8_t>(length);
    const Bytes whole = first_of(bytes, length);
    entries_[place_of(whole)] = {whole, value};
  }

private:
  static constexpr size_t kEntries = 2048, kBegins = 4096, kMaxLength = 15;

  struct Bytes {
    uint64_t low = 0, high = 0; // of the instruction; the highest byte is its length
    bool operator==(const Bytes &) const = default;
  };
  struct Entry {
    Bytes bytes;
    Value value;
  };

  static uint64_t low_bytes(uint64_t word, unsigned bytes) {
    return bytes >= 8 ? word : word & ((uint64_t{1} << 8 * bytes) - 1);
  }
  static Bytes first_of(std::span<const std::byte> bytes, unsigned length) {
    Bytes first;
    std::memcpy(&first, bytes.data(), sizeof first);
    first.low = low_bytes(first.low, length);
    first.high = low_bytes(first.high, length > 8 ? length - 8 : 0) | uint64_t{length} << 56;
    return first;
  }
  static uint64_t mixed(uint64_t word) {
    word *= 0x9e3779b97f4a7c15;
    return word ^ word >> 32;
  }
  static size_t place_of(const Bytes &bytes) {
    return mixed(bytes.low ^ mixed(bytes.high)) % kEntries;
  }
  // Four bytes: prefix, opcode and what says how an operand is addressed decide on the length, mostly.
  static size_t begin_of(std::span<const std::byte> bytes) {
    uint32_t begin;
    std::memcpy(&begin, bytes.data(), sizeof begin);
    return mixed(begin) % kBegins;
  }

  std::vector<Entry> entries_;
  std::vector<uint8_t> lengths_;
};

} // namespace binary
