// Numbers, texts and micro-ops as the records of a trace hold them (docs/trace-format.md).
#pragma once

#include "base/byte_reader.h"
#include "base/fail.h"
#include "base/units.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trace {

// LEB128, seven bits a byte; signed numbers with their sign in the lowest bit.
class Encoder {
public:
  std::vector<std::byte> bytes;
  void number(uint64_t value) {
    do {
      const auto low = static_cast<uint8_t>(value & 0x7f);
      value >>= 7;
      bytes.push_back(static_cast<std::byte>(value ? low | 0x80 : low));
    } while (value);
  }
  void signed_number(int64_t value) {
    number(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  void text(const std::string &text) {
    number(text.size());
    const auto *raw = reinterpret_cast<const std::byte *>(text.data());
    bytes.insert(bytes.end(), raw, raw + text.size());
  }
};

class Decoder {
public:
  explicit Decoder(std::span<const std::byte> bytes) : reader_(bytes, "a record of the trace") {}
  uint64_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = reader_.read<uint8_t>();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    base::fail("a number in a record of the trace has no end");
  }
  // A number that a type holds, at most `most`.
  template <class T> T bounded(uint64_t most) {
    const uint64_t value = number();
    if (value > most)
      base::fail("a number in a record of the trace is {}, where at most {} makes sense", value,
                 most);
    return static_cast<T>(value);
  }
  int64_t signed_number() {
    const uint64_t value = number();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  std::string text() { return std::string(reader_.text(number())); }
  bool is_at_end() const { return reader_.rest().empty(); }

private:
  base::ByteReader reader_;
};

// Each of what a record is said to hold takes a byte at least, so a damaged count cannot ask for
// much memory. Throws Failure.
inline void check_count(std::span<const std::byte> bytes, uint32_t count, std::string_view one) {
  if (count > bytes.size())
    base::fail("a record of the trace is said to hold {} in {}", base::with_noun(count, one),
               base::with_noun(bytes.size(), "byte"));
}

} // namespace trace
