// Threads that work for others are often begun with all signals blocked, so that handlers run
// elsewhere (liblzma, GLib). Ours would never come there. So in a thread that begins with our
// signal blocked it is not, and the program is told that it is: what comes for the program is held
// until it unblocks the signal. A thread that blocks it later does so for a moment, and is not
// sampled for that long.
//
// A program that such a thread executes by posix_spawn begins with the signal unblocked.

#include "runtime/upcall/upcall.h"

#include "runtime/core/system/syscall.h"

#include <errno.h>

namespace assay::upcall {
namespace {

void change_kernel_mask(int how) {
  const uint64_t ours = our_signal_bit();
  sys::call(SYS_rt_sigprocmask, how, (long)&ours, 0, 8);
}

// The program unblocks the signal: it is as any other from here on.
void unmask(Thread &thread) {
  thread.is_masked = false;
  if (thread.has_held) {
    thread.has_held = false;
    sys::call(SYS_rt_tgsigqueueinfo, process, thread.tid, our_signal(), (long)&thread.held);
  }
}

int (*real_mask)(int, const sigset_t *, sigset_t *);

// 0, or an error's number.
int change_mask(int how, const sigset_t *set, sigset_t *before) {
  real_function(real_mask, "pthread_sigmask");
  Thread *thread = shared.header ? mine : nullptr;
  if (!thread || !thread->is_masked || !is_in_own_process())
    return real_mask(how, set, before);
  sigset_t changed;
  bool unblocks = false;
  if (set) {
    changed = *set; // before `before` is written, which may be the same
    const bool has_ours = sigismember(set, our_signal()) == 1;
    unblocks = (how == SIG_UNBLOCK && has_ours) || (how == SIG_SETMASK && !has_ours);
    if (how != SIG_UNBLOCK)
      sigdelset(&changed, our_signal());
  }
  const int error = real_mask(how, set ? &changed : nullptr, before);
  if (error)
    return error;
  if (before)
    sigaddset(before, our_signal());
  if (unblocks)
    unmask(*thread);
  return 0;
}

} // namespace

void begin_masked(Thread &thread) {
  uint64_t mask = 0;
  sys::call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, 8);
  thread.has_held = false;
  thread.is_masked = mask & our_signal_bit();
  if (thread.is_masked)
    change_kernel_mask(SIG_UNBLOCK);
}

void end_masked(Thread &thread) {
  if (!thread.is_masked)
    return;
  change_kernel_mask(SIG_BLOCK);
  unmask(thread); // what was held waits in the kernel
}

bool hold(Thread &thread, const siginfo_t &info) {
  if (!thread.is_masked || info.si_code > 0) // a fault of the thread's own is never blocked
    return false;
  thread.held = info;
  thread.has_held = true;
  return true;
}

} // namespace assay::upcall

using namespace assay::upcall;

ASSAY_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *before) noexcept {
  return change_mask(how, set, before);
}
ASSAY_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *before) noexcept {
  const int error = change_mask(how, set, before);
  if (error)
    errno = error;
  return error ? -1 : 0;
}
