// The rate of the time stamp counter, measured against the kernel's clock.
#pragma once

#include <stdint.h>

namespace assay {

// Both clocks at one moment, which lies within `width` ticks.
struct ClockPair {
  uint64_t ns, ticks, width;
};

// A thread may lose its cpu between two readings, for longer than all of them take. Then the pair is wide: the
// narrowest of several is taken.
template <typename ReadNs, typename ReadTicks>
ClockPair read_pair(ReadNs read_ns, ReadTicks read_ticks) {
  constexpr int kReadings = 16;
  ClockPair narrowest = {0, 0, UINT64_MAX};
  for (int i = 0; i < kReadings; i++) {
    const uint64_t before = read_ticks();
    const uint64_t ns = read_ns();
    const uint64_t width = read_ticks() - before;
    if (width < narrowest.width)
      narrowest = {ns, before + width / 2, width};
  }
  return narrowest;
}

// Kilohertz, to a thousandth; measured for half a millisecond, longer only where no pair is narrow enough.
template <typename ReadNs, typename ReadTicks>
uint64_t measured_khz(ReadNs read_ns, ReadTicks read_ticks) {
  constexpr uint64_t kMinNs = 500000, kMaxNs = 50000000, kThousandth = 1000;
  const ClockPair first = read_pair(read_ns, read_ticks);
  while (true) {
    const ClockPair last = read_pair(read_ns, read_ticks);
    const uint64_t ns = last.ns - first.ns, elapsed = last.ticks - first.ticks;
    const bool is_exact = (first.width + last.width) / 2 * kThousandth < elapsed;
    if (ns >= kMaxNs || (ns >= kMinNs && is_exact))
      return elapsed / ns * 1000000 +
             elapsed % ns * 1000000 / ns; // without overflow, and without __udivti3
  }
}

} // namespace assay
