// Two events an object, so the clock is on the hot path: clock_gettime through the vDSO costs about
// 25 ns, reading the counter 8.

#include "runtime/core/system/clock.h"

#include <cpuid.h>
#include <stddef.h>

#include "runtime/core/system/syscall.h"

extern "C" {
extern const __attribute__((weak)) ptrdiff_t __rseq_offset; // of the area, from the thread pointer
extern const __attribute__((weak)) unsigned __rseq_size;    // 0 if it is not registered
}

namespace assay {
namespace {

struct {
  uint64_t start_ticks;
  uint64_t us_per_tick_32; // 32.32 fixed point
  uint64_t start_ns;
  ptrdiff_t rseq_offset; // from the thread pointer; 0: there is none
  bool invariant;
} constinit clock_state = {};

inline uint64_t ticks() {
  return __builtin_ia32_rdtsc();
}

bool counter_is_invariant() {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}

// Kilohertz as the hypervisor or the cpu states it; 0 where it does not.
uint64_t stated_khz() {
  unsigned a, b, c, d;
  __cpuid(1, a, b, c, d);
  if (c & (1u << 31)) { // under a hypervisor
    __cpuid(0x40000000, a, b, c, d);
    if (a >= 0x40000010) {
      __cpuid(0x40000010, a, b, c, d);
      return a;
    }
  }
  if (__get_cpuid(0x15, &a, &b, &c, &d) && a && b && c)
    return (uint64_t)c * b / a / 1000;
  return 0;
}

uint64_t measured_khz() {
  uint64_t ns0 = sys::clock_ns(CLOCK_MONOTONIC), t0 = ticks(), ns1;
  do
    ns1 = sys::clock_ns(CLOCK_MONOTONIC);
  while (ns1 - ns0 < 500000);
  return (ticks() - t0) * 1000000 / (ns1 - ns0);
}

} // namespace

void start_clock() {
  clock_state.invariant = counter_is_invariant();
  if (clock_state.invariant) {
    uint64_t khz = stated_khz();
    if (!khz)
      khz = measured_khz();
    clock_state.us_per_tick_32 = (1000ULL << 32) / khz;
  }
  restart_clock();
}

void restart_clock() {
  clock_state.start_ticks = ticks();
  clock_state.start_ns = sys::clock_ns(CLOCK_MONOTONIC);
}

static uint64_t us_from(uint64_t tick) {
  uint64_t elapsed = tick - clock_state.start_ticks;
  if ((int64_t)elapsed < 0) // another cpu's counter, a little behind
    return 0;
  return (uint64_t)(((unsigned __int128)elapsed * clock_state.us_per_tick_32) >> 32);
}

uint64_t now_us() {
  if (clock_state.invariant)
    return us_from(ticks());
  return (sys::clock_ns(CLOCK_MONOTONIC) - clock_state.start_ns) / 1000;
}

// The kernel keeps the cpu number in the rseq area that glibc 2.35 and later registers for each
// thread.
static uint32_t current_cpu() {
  if (__builtin_expect(!clock_state.rseq_offset, 0)) {
    if (!&__rseq_offset || !&__rseq_size || !__rseq_size) { // perhaps not yet
      unsigned cpu = 0;
      sys::call(SYS_getcpu, (long)&cpu);
      return cpu;
    }
    clock_state.rseq_offset = __rseq_offset;
  }
  uint32_t cpu;
  asm volatile("movl %%fs:4(%1), %0" : "=r"(cpu) : "r"(clock_state.rseq_offset));
  return cpu;
}

Moment now() {
  return {now_us(), current_cpu()};
}

} // namespace assay
