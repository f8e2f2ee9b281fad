// A microsecond clock that costs a few nanoseconds: the time stamp counter where it is invariant,
// the kernel's clock where it is not. Microseconds since start_clock().
#pragma once

#include <stdint.h>

namespace assay {

struct Moment {
  uint64_t us;
  uint32_t cpu;
};

// Calibrates against CLOCK_MONOTONIC for half a millisecond, unless the cpu states its rate.
void start_clock();

// For the child of a fork: time goes on from zero.
void restart_clock();

uint64_t now_us();
Moment now(); // with the cpu that runs this thread

} // namespace assay
