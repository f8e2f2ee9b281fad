// Numbers for what has a name, the same in each run and version: FNV-1a (Fowler, Noll, Vo), 64 bits.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace base {

class StableHash {
public:
  void add(uint64_t step) { value_ = (value_ ^ step) * 0x100000001b3; }
  void add_bytes(std::span<const uint8_t> bytes) {
    for (const uint8_t byte : bytes)
      add(byte);
  }
  void add_text(std::string_view text) {
    for (const char c : text)
      add(static_cast<uint8_t>(c));
  }
  uint64_t value() const { return value_; }

private:
  uint64_t value_ = 0xcbf29ce484222325;
};

} // namespace base
