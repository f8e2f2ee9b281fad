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

// The processor time of the program: what the helper thread uses is not its own.
class ProgramCpuTime {
public:
  uint64_t us(bool on_helper);
  void reset_in_child() { helper_us_ = 0; }

private:
  uint64_t helper_us_ = 0; // when it last asked
};

// Keeps the time that threads get which may not read the counter. Of the helper thread, now and then.
void keep_time();

// A thread may be forbidden to read the counter (prctl PR_SET_TSC, strict seccomp), and gets
// SIGSEGV. Whether the fault is that, at one of our reads: then the read gives the time that was
// kept last, a microsecond more each time, without a system call. `context` is the handler's
// ucontext_t.
bool give_kept_time(void *context);
// Whether this thread may read the counter, as the kernel says.
bool may_read_counter();
// Whether give_kept_time() has been asked in this process.
bool has_given_kept_time();
// From now on the kernel is asked, where a second fault must not come: on a stack of ours, the
// kernel would take the handler's for free.
void use_kernel_clock();

} // namespace assay
