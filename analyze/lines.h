// The cache lines that an access touches.
#pragma once

#include <cstdint>

namespace analyze {

inline constexpr unsigned kLineShift = 6, kPageShift = 12; // of 64 bytes, of 4 KiB

// Calls `touch` with the number of each line of 2^shift bytes, in order. An access of 0 bytes,
// whose size is not known, touches the line of its address.
template <class Touch>
inline void for_each_line(uint64_t address, uint32_t bytes, unsigned shift, Touch &&touch) {
  uint64_t line = address >> shift;
  touch(line);
  for (const uint64_t last = (address + bytes - (bytes != 0)) >> shift; line < last;)
    touch(++line);
}

} // namespace analyze
