// Signals as the program sees them. One is ours in the kernel; what the program sets and asks for
// it is kept in a table, and one that is not of our making goes where it would have gone. SIGSEGV
// and SIGBUS are ours only as long as the program leaves them to the system: a fault that is not in
// a load of ours is then made again with the system's action, so that status and core are what they
// were. Once the program handles faults, they are its own.
//
// Our handler runs on a stack of our own where the program has none. What the program asks about
// its stack does not show it.
//
// Who calls the kernel without libc is not covered.

#include "runtime/upcall/upcall.h"

#include "runtime/core/system/kernel_signal.h"
#include "runtime/core/system/signal_functions.h"
#include "runtime/core/system/syscall.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

extern "C" {
extern const char assay_upcall_timed_begin[], assay_upcall_timed_end[], assay_upcall_timed_failed[];
extern const char assay_upcall_load_begin[], assay_upcall_load_end[], assay_upcall_load_failed[];
}

namespace assay::upcall {
namespace {

constexpr uint64_t kFaults = uint64_t{1} << (SIGSEGV - 1) | uint64_t{1} << (SIGBUS - 1);

struct sigaction program_action; // what the program has set for our signal
bool guards_segv, guards_bus;    // the handler in the kernel is ours
bool hides_ours_in[kSignals];    // we have added our signal to what this handler blocks

bool &guard_of(int number) {
  return number == SIGSEGV ? guards_segv : guards_bus;
}

void set_default(int number) {
  const KernelAction none = {};
  set_kernel_action(number, &none, nullptr);
}

// Sends the signal once more, as it came: it is taken when the handler returns.
void send_again(int number, siginfo_t *info) {
  sys::call(SYS_rt_tgsigqueueinfo, process, sys::thread_id(), number, (long)info);
}

void on_fault(int number, siginfo_t *info, void *context) {
  greg_t &pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  auto at = (const char *)pc;
  if (at >= assay_upcall_load_begin && at < assay_upcall_load_end) {
    pc = (greg_t)assay_upcall_load_failed;
    return;
  }
  if (at >= assay_upcall_timed_begin && at < assay_upcall_timed_end) {
    pc = (greg_t)assay_upcall_timed_failed;
    return;
  }
  guards_segv = guards_bus = false;
  set_default(number);
  if (info->si_code <= 0) // sent, not made by an instruction, which would make it again
    send_again(number, info);
}

void take_faults(int number) {
  KernelAction before = {};
  set_kernel_action(number, nullptr, &before);
  if (before.handler)
    return; // ignored: inherited
  const KernelAction ours = kernel_action(on_fault, SA_NODEFER | SA_RESTART);
  guard_of(number) = !sys::failed(set_kernel_action(number, &ours, nullptr));
}

int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);

int change_ours(const struct sigaction *action, struct sigaction *before) {
  if (before)
    *before = program_action;
  if (action) {
    program_action = *action;
    sigdelset(&program_action.sa_mask, SIGKILL);
    sigdelset(&program_action.sa_mask, SIGSTOP);
  }
  return 0;
}

int change_fault(int number, const struct sigaction *action, struct sigaction *before) {
  const bool was_ours = guard_of(number);
  if (!action) {
    if (was_ours && before) {
      *before = {};
      return 0;
    }
    return real_sigaction(number, nullptr, before);
  }
  guard_of(number) = false;
  const int result = real_sigaction(number, action, before);
  if (result == 0 && was_ours && before)
    *before = {};
  return result;
}

// A handler on a stack of its own may have little of it: no sample is taken there.
int change_other(int number, const struct sigaction *action, struct sigaction *before) {
  struct sigaction changed;
  const bool was_hidden = hides_ours_in[number];
  bool hides = false;
  if (action) {
    changed = *action;
    hides = (action->sa_flags & SA_ONSTACK) && !sigismember(&action->sa_mask, our_signal());
    if (hides)
      sigaddset(&changed.sa_mask, our_signal());
  }
  const int result = real_sigaction(number, action ? &changed : nullptr, before);
  if (result != 0)
    return result;
  if (action)
    hides_ours_in[number] = hides;
  if (before && was_hidden)
    sigdelset(&before->sa_mask, our_signal());
  return 0;
}

int change(int number, const struct sigaction *action, struct sigaction *before) {
  real_function(real_sigaction, "sigaction");
  if (!shared.header || number <= 0 || number >= kSignals || !is_in_own_process())
    return real_sigaction(number, action, before);
  if (number == our_signal())
    return change_ours(action, before);
  if (number == SIGSEGV || number == SIGBUS)
    return change_fault(number, action, before);
  return change_other(number, action, before);
}

bool is_sampled_thread() {
  return shared.header && mine && is_in_own_process();
}

// The program takes the signal itself, without a handler: this thread is sampled no more.
void leave_traps_to(const sigset_t *set) {
  if (!is_sampled_thread() || !(*(const uint64_t *)set & our_signal_bit()) || !mine->slot)
    return;
  stop_sampling(*mine);
  end_masked(*mine);
  mine->slot = nullptr;
  take_back_waiting();
  __atomic_fetch_add(&shared.news->unsampled_threads, 1, __ATOMIC_RELAXED);
}

} // namespace

bool loads_are_guarded() {
  return guards_segv && guards_bus;
}

bool take_back_waiting() {
  siginfo_t info;
  const timespec none = {};
  const int number = our_signal();
  const uint64_t set = our_signal_bit();
  // Those of the thread, and those of the process behind them.
  while (sys::call(SYS_rt_sigtimedwait, (long)&set, (long)&info, (long)&none, 8) == number)
    if (!is_own_signal(info)) {
      send_again(number, &info);
      return true;
    }
  return false;
}

void take_signals() {
  KernelAction ours = kernel_action(on_signal, SA_RESTART), before = {};
  ours.mask = ~kFaults;
  set_kernel_action(our_signal(), &ours, &before);
  program_action.sa_sigaction = before.handler; // inherited: the default, or ignored
  take_faults(SIGSEGV);
  take_faults(SIGBUS);
}

void pass_on(int number, siginfo_t *info, void *context) {
  const struct sigaction action = program_action;
  const bool is_made_here = info->si_code > 0; // int3, or a debugger's
  if (action.sa_handler == SIG_IGN && !is_made_here)
    return;
  if (action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL) {
    if (mine) { // one of ours that waits would swallow it
      stop_sampling(*mine);
      take_back_waiting();
    }
    set_default(number);
    send_again(number, info);
    return;
  }
  if ((unsigned)action.sa_flags & SA_RESETHAND)
    program_action = {};
  const uint64_t interrupted = *(const uint64_t *)&((ucontext_t *)context)->uc_sigmask;
  const uint64_t mask = interrupted | *(const uint64_t *)&action.sa_mask |
                        (action.sa_flags & SA_NODEFER ? 0 : our_signal_bit());
  uint64_t before;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, (long)&before, 8);
  action.sa_sigaction(number, info, context);
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, 8);
}

} // namespace assay::upcall

using namespace assay;
using namespace assay::upcall;

ASSAY_SIGNAL_FUNCTIONS(change)

ASSAY_EXPORT int sigaltstack(const stack_t *stack, stack_t *before) noexcept {
  static decltype(&sigaltstack) real;
  real_function(real, "sigaltstack");
  if (!is_sampled_thread())
    return real(stack, before);
  stack_t now = {}, ours = {};
  sys::call(SYS_sigaltstack, 0, (long)&now);
  const bool is_ours = now.ss_sp == mine->stack && !(now.ss_flags & SS_DISABLE);
  if (stack) {
    const int result = real(stack, nullptr);
    if (result != 0)
      return result;
    if (stack->ss_flags & SS_DISABLE) {
      ours.ss_sp = mine->stack;
      ours.ss_size = kStackBytes;
      sys::call(SYS_sigaltstack, (long)&ours, 0);
    } else if (stack->ss_size < getauxval(AT_MINSIGSTKSZ) + kHandlerStackBytes) {
      stop_sampling(*mine); // its stack has no room for us
      mine->slot = nullptr;
      __atomic_fetch_add(&shared.news->unsampled_threads, 1, __ATOMIC_RELAXED);
    }
  }
  if (before) {
    *before = is_ours ? stack_t{} : now;
    if (is_ours)
      before->ss_flags = SS_DISABLE;
  }
  return 0;
}

ASSAY_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const timespec *time) {
  static decltype(&sigtimedwait) real;
  leave_traps_to(set);
  HiddenWait hidden;
  return real_function(real, "sigtimedwait")(set, info, time);
}
ASSAY_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info) {
  static decltype(&sigwaitinfo) real;
  leave_traps_to(set);
  HiddenWait hidden;
  return real_function(real, "sigwaitinfo")(set, info);
}
ASSAY_EXPORT int sigwait(const sigset_t *set, int *number) {
  static decltype(&sigwait) real;
  leave_traps_to(set);
  return real_function(real, "sigwait")(set, number);
}
ASSAY_EXPORT int signalfd(int file, const sigset_t *set, int flags) noexcept {
  static int (*real)(int, const sigset_t *, int);
  leave_traps_to(set);
  if (*(const uint64_t *)set & our_signal_bit())
    is_off = true; // any thread may read them
  return real_function(real, "signalfd")(file, set, flags);
}
ASSAY_EXPORT int sigpending(sigset_t *set) noexcept {
  static int (*real)(sigset_t *);
  const int result = real_function(real, "sigpending")(set);
  if (result == 0 && is_sampled_thread() && sigismember(set, our_signal())) {
    stop_sampling(*mine);
    if (!take_back_waiting())
      sigdelset(set, our_signal());
    sample_thread();
  }
  if (result == 0 && is_sampled_thread() && mine->is_masked && mine->has_held)
    sigaddset(set, our_signal());
  return result;
}

// A SIGTRAP of ours that waits would swallow another one: the kernel keeps one of it. raise()
// blocks signals while it works.
ASSAY_EXPORT int raise(int number) noexcept {
  static int (*real)(int);
  const bool is_trap = number == SIGTRAP && is_sampled_thread() && !is_timer();
  if (is_trap) {
    stop_sampling(*mine);
    take_back_waiting();
  }
  const int result = real_function(real, "raise")(number);
  if (is_trap)
    sample_thread();
  return result;
}
ASSAY_EXPORT int pthread_kill(pthread_t thread, int number) noexcept {
  static int (*real)(pthread_t, int);
  return number == SIGTRAP && pthread_equal(thread, pthread_self())
             ? raise(number)
             : real_function(real, "pthread_kill")(thread, number);
}
