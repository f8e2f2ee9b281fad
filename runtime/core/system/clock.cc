// Two events an object, so the clock is on the hot path: clock_gettime through the vDSO costs about
// 25 ns, reading the counter 8.

#include "runtime/core/system/clock.h"

#include <cpuid.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "runtime/core/system/counter_rate.h"
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
  uint64_t kept_ticks;
  bool has_given_kept;
  ptrdiff_t rseq_offset; // from the thread pointer; 0: there is none
  bool invariant;
} constinit clock_state = {};

// Each place that reads the counter is listed, so that a fault there is known.
inline uint64_t ticks() {
  uint32_t low, high;
  asm volatile("1: rdtsc\n\t"
               ".pushsection assay_counter_reads, \"aR\"\n\t"
               ".long 1b - .\n\t"
               ".popsection"
               : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
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

} // namespace

void start_clock() {
  clock_state.invariant = counter_is_invariant();
  if (clock_state.invariant) {
    uint64_t khz = stated_khz();
    if (!khz)
      khz = measured_khz([] { return sys::clock_ns(CLOCK_MONOTONIC); }, ticks);
    if (khz)
      clock_state.us_per_tick_32 = (1000ULL << 32) / khz;
    else // it stands still
      clock_state.invariant = false;
  }
  restart_clock();
}

uint64_t ProgramCpuTime::us(bool on_helper) {
  if (on_helper)
    helper_us_ = sys::clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;
  const uint64_t all = sys::clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000;
  return all > helper_us_ ? all - helper_us_ : 0;
}

void restart_clock() {
  clock_state.start_ticks = clock_state.kept_ticks = ticks();
  clock_state.start_ns = sys::clock_ns(CLOCK_MONOTONIC);
}

void keep_time() {
  if (clock_state.invariant)
    __atomic_store_n(&clock_state.kept_ticks, ticks(), __ATOMIC_RELAXED);
}

extern "C" __attribute__((visibility("hidden"))) const int32_t __start_assay_counter_reads[],
    __stop_assay_counter_reads[];

bool give_kept_time(void *context) {
  auto &registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  constexpr greg_t kBytes = 2; // of rdtsc
  for (const int32_t *read = __start_assay_counter_reads; read < __stop_assay_counter_reads; read++)
    if ((greg_t)read + *read == registers[REG_RIP]) {
      // A microsecond later than the one before: a fault takes longer, so this clock does not run ahead.
      const uint64_t kept = __atomic_add_fetch(
          &clock_state.kept_ticks, (1ULL << 32) / clock_state.us_per_tick_32 + 1, __ATOMIC_RELAXED);
      registers[REG_RAX] = (greg_t)(kept & 0xffffffff);
      registers[REG_RDX] = (greg_t)(kept >> 32);
      registers[REG_RIP] += kBytes;
      clock_state.has_given_kept = true;
      return true;
    }
  return false;
}

bool has_given_kept_time() {
  return clock_state.has_given_kept;
}

bool may_read_counter() {
  int allowed = 0;
  return !sys::failed(sys::call(SYS_prctl, PR_GET_TSC, (long)&allowed)) && allowed == PR_TSC_ENABLE;
}

static uint64_t us_from(uint64_t tick) {
  uint64_t elapsed = tick - clock_state.start_ticks;
  if ((int64_t)elapsed < 0) // another cpu's counter, a little behind
    return 0;
  return (uint64_t)(((unsigned __int128)elapsed * clock_state.us_per_tick_32) >> 32);
}

// The counter's rate is known to some hundredths of a percent: the kernel's clock may be behind what was given.
void use_kernel_clock() {
  if (!clock_state.invariant)
    return;
  clock_state.invariant = false;
  const uint64_t now = sys::clock_ns(CLOCK_MONOTONIC);
  const uint64_t given = us_from(clock_state.kept_ticks) * 1000;
  if (now - clock_state.start_ns < given)
    clock_state.start_ns = now - given;
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
