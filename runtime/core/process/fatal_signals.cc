// A handler takes the place of the default action only: where the program installs a handler or
// ignores a signal, the kernel gets what the program gave; where it goes back to the default, it
// gets ours again. What the program asks for and is told comes from a table.
//
// In the handler: finish the profile, set the default, and let it happen again: a fault by
// executing the instruction once more (the core shows the true place), anything else by sending it
// to this thread. If the signal came while this thread was inside the runtime, locks may be held:
// the end of that section raises it again; a fault there is not survived, as where the stack ends
// in the runtime's code: the helper gets some time for a last snapshot, if it comes by those locks.
//
// With usr2=1, SIGUSR2 is not fatal: it asks the helper thread for a snapshot.
//
// abort and raise end the profile before they send what ends the program: a handler of the program's on a small
// alternate stack calls them, where there is no room for the kernel's frame of a second signal.
//
// Where a shadow is mapped as it is touched, SIGSEGV cannot be the program's: its handler is called
// by ours, and the signal is in no mask, because instrumented handlers touch the shadow, too.
//
// A thread that may not read the cpu's counter faults where we read it, and gets a time that was
// kept (core/system/clock.h).
//
// Not covered: who calls the kernel without libc; a stack overflow of another thread than the
// first, where the program has set no alternate stack; and a signal that another process or thread
// sends while a handler fills a small one. Then what was flushed is what there is.

#include "runtime/core/process/fatal_signals.h"

#include <errno.h>

#include "runtime/core/process/fault_stack.h"
#include "runtime/core/process/foreign_free.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/process/units.h"
#include "runtime/core/runtime.h"
#include "runtime/core/shadow/lazy_shadow.h"
#include "runtime/core/system/clock.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/helper_thread.h"
#include "runtime/core/system/kernel_signal.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/signal_functions.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

struct {
  bool ours[kSignals];             // the kernel has our handler where the program has the default
  struct sigaction told[kSignals]; // what the program believes in, for those
  // What the program's handler asks for, and the kernel does not know: an alternate stack, SIGSEGV blocked.
  bool lacks_stack[kSignals], lacks_segv[kSignals];
  bool program_has_stack;
  bool keeps_faults; // map_shadow_in_handler()
  SpinLock lock;
} constinit signals = {};

// The default of these ends the program.
bool ends_program(int signal) {
  switch (signal) {
  case SIGKILL:
  case SIGSTOP:
  case SIGTSTP:
  case SIGTTIN:
  case SIGTTOU:
  case SIGCONT:
  case SIGCHLD:
  case SIGURG:
  case SIGWINCH: return false;
  default: return signal > 0 && signal < kSignals && !belongs_to_libc(signal);
  }
}

bool is_fault(int signal, const siginfo_t *info) {
  return info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
                               signal == SIGFPE || signal == SIGTRAP || signal == SIGSYS);
}

void explain_fault() {
  for (size_t i = 0; const Subscriber *tool = running_tool(i); i++)
    if (const char *why = tool->why_fault())
      say(why);
}

void die_of(int signal, bool fault) {
  KernelAction fallback = {};
  set_kernel_action(signal, &fallback, nullptr);
  if (!fault)
    sys::call(SYS_tgkill, sys::process_id(), sys::thread_id(), signal);
}

void on_fatal_signal(int signal, siginfo_t *info, void *context) {
  if (signal == SIGUSR2 && runtime.options.usr2) {
    request_dump();
    return;
  }
  bool fault = is_fault(signal, info);
  if (signal == SIGSEGV && fault && give_kept_time(context))
    return;
  if (this_thread.busy && !fault) {
    this_thread.pending_signal = (uint32_t)signal;
    return;
  }
  int saved = errno;
  if (fault)
    explain_fault();
  if ((signal == SIGABRT || signal == SIGSEGV) && died_freeing_unseen(*(const ucontext_t *)context))
    say("the program gave an object to libc's free by another way than its name (dlsym, "
        "RTLD_DEEPBIND, __libc_free), where nobody knows of the header that lies before each "
        "object; run it with `--options headers=0`, which leaves them out");
  finish(ASSAY_END_SIGNAL, signal);
  errno = saved;
  die_of(signal, fault);
}

void install_ours(int signal) {
  KernelAction action = kernel_action(on_fatal_signal, SA_RESTART);
  set_kernel_action(signal, &action, nullptr);
}

// Or somebody has asked the kernel without us: code that calls it itself, a sanitizer's functions
// in front of libc's. Under the lock.
bool is_still_ours(int signal) {
  if (!signals.ours[signal])
    return false;
  KernelAction now;
  signals.ours[signal] =
      !sys::failed(set_kernel_action(signal, nullptr, &now)) && now.handler == on_fatal_signal;
  return signals.ours[signal];
}

bool is_default(const struct sigaction &a) {
  return !(a.sa_flags & SA_SIGINFO) && a.sa_handler == SIG_DFL;
}

bool is_ignored(const struct sigaction &a) {
  return !(a.sa_flags & SA_SIGINFO) && a.sa_handler == SIG_IGN;
}

// What the program set for SIGSEGV, as it is when a signal comes.
struct sigaction take_action_of_faults() {
  Locked locked(signals.lock);
  struct sigaction &told = signals.told[SIGSEGV];
  const struct sigaction now = told;
  if (now.sa_flags & (int)SA_RESETHAND)
    told = {};
  return now;
}

// As the kernel would call the program's handler, but that SIGSEGV is not blocked.
void call_handler(const struct sigaction &action, int signal, siginfo_t *info, void *context) {
  sigset_t mask = action.sa_mask;
  remove_signal(mask, SIGSEGV);
  sys::call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, sizeof(uint64_t));
  if (action.sa_flags & SA_SIGINFO)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
}

void on_fault(int signal, siginfo_t *info, void *context) {
  if (info->si_code > 0 && (map_touched((uint64_t)info->si_addr) || give_kept_time(context)))
    return;
  const struct sigaction action = take_action_of_faults();
  const bool fault = is_fault(signal, info);
  if (is_ignored(action)) {
    if (fault)
      die_of(signal, fault);
  } else if (!is_default(action)) {
    call_handler(action, signal, info, context);
  } else if (is_recording()) {
    on_fatal_signal(signal, info, context);
  } else {
    die_of(signal, fault);
  }
}

// It runs where the program's would: on the alternate stack if that one asks for it. Restarting
// calls is the program's choice, too.
void install_on_fault(const struct sigaction &told) {
  KernelAction action = kernel_action(on_fault, SA_NODEFER);
  if (!is_default(told)) {
    action.flags &= ~(uint64_t)SA_ONSTACK;
    action.flags |= (uint64_t)told.sa_flags & (SA_RESTART | (hides_fault_stack() ? 0 : SA_ONSTACK));
  }
  set_kernel_action(SIGSEGV, &action, nullptr);
}

int change_action_of_faults(const struct sigaction *action, struct sigaction *before) {
  if (before)
    *before = signals.told[SIGSEGV];
  if (action) {
    signals.told[SIGSEGV] = *action;
    install_on_fault(*action);
  }
  return 0;
}

} // namespace

void unblock_faults() {
  const uint64_t set = 1ULL << (SIGSEGV - 1);
  sys::call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&set, 0, sizeof set);
}

void map_shadow_in_handler() {
  if (!is_shadow_lazy() || signals.keeps_faults)
    return;
  signals.keeps_faults = true;
  real.sigaction(SIGSEGV, nullptr, &signals.told[SIGSEGV]);
  install_on_fault(signals.told[SIGSEGV]);
  unblock_faults();
}

void catch_fatal_signals() {
  for (int signal = 1; signal < kSignals; signal++) {
    KernelAction now;
    if (!ends_program(signal) || sys::failed(set_kernel_action(signal, nullptr, &now)) ||
        now.handler)
      continue;
    signals.ours[signal] = true;
    install_ours(signal);
  }
}

static void reset_signals_in_child() {
  signals.lock.reset();
}
ASSAY_RESET_IN_CHILD(reset_signals_in_child);

void raise_pending_signal() {
  int signal = (int)this_thread.pending_signal;
  this_thread.pending_signal = 0;
  sys::call(SYS_tgkill, sys::process_id(), sys::thread_id(), signal);
}

namespace {

// The child of a vfork shares the table but not the actions: the kernel alone knows its own.
int change_action_of_other(int signal, const struct sigaction *action, struct sigaction *before) {
  int result = real.sigaction(signal, action, before);
  if (result == 0 && before &&
      (before->sa_sigaction == on_fatal_signal || before->sa_sigaction == on_fault))
    *before = signals.told[signal];
  return result;
}

// As real.sigaction, for the program's own actions.
int change_own_action(int signal, const struct sigaction *action, struct sigaction *before) {
  const bool lacked_stack = signals.lacks_stack[signal], lacked_segv = signals.lacks_segv[signal];
  struct sigaction changed = {};
  bool lacks_stack = false, lacks_segv = false;
  if (action) {
    changed = *action;
    lacks_stack = changed.sa_flags & SA_ONSTACK && hides_fault_stack();
    if (lacks_stack)
      changed.sa_flags &= ~SA_ONSTACK;
    lacks_segv = signals.keeps_faults && has_signal(changed.sa_mask, SIGSEGV);
    if (lacks_segv)
      remove_signal(changed.sa_mask, SIGSEGV);
  }
  if (real.sigaction(signal, action ? &changed : nullptr, before) != 0)
    return -1;
  if (action) {
    signals.lacks_stack[signal] = lacks_stack;
    signals.lacks_segv[signal] = lacks_segv;
  }
  if (before && lacked_stack)
    before->sa_flags |= SA_ONSTACK;
  if (before && lacked_segv)
    add_signal(before->sa_mask, SIGSEGV);
  return 0;
}

int change_action(int signal, const struct sigaction *action, struct sigaction *before) {
  find_real_functions();
  if (signal <= 0 || signal >= kSignals)
    return real.sigaction(signal, action, before);
  if (!owns_memory())
    return change_action_of_other(signal, action, before);
  const bool may_be_ours = ends_program(signal) && is_recording();
  if (!may_be_ours && !signals.lacks_stack[signal] && !signals.keeps_faults &&
      !(action && action->sa_flags & SA_ONSTACK))
    return real.sigaction(signal, action, before);
  ReentrancyGuard busy;
  SignalsBlocked blocked;
  Locked locked(signals.lock);
  if (signals.keeps_faults && signal == SIGSEGV)
    return change_action_of_faults(action, before);
  if (!may_be_ours)
    return change_own_action(signal, action, before);
  bool was_ours = is_still_ours(signal);
  struct sigaction old = signals.told[signal];
  if (action && is_default(*action)) {
    if (!was_ours && change_own_action(signal, nullptr, &old) != 0)
      return -1;
    signals.lacks_stack[signal] = signals.lacks_segv[signal] = false;
    signals.ours[signal] = true;
    signals.told[signal] = *action;
    install_ours(signal);
  } else if (action || !was_ours) {
    if (change_own_action(signal, action, was_ours ? nullptr : &old) != 0)
      return -1;
    signals.ours[signal] = false;
  }
  if (before)
    *before = old;
  return 0;
}

} // namespace

void let_handlers_use_signal_stacks() {
  if (!hides_fault_stack())
    return;
  // The child of a vfork shares the table, but not what the kernel knows.
  const bool is_table_own = owns_memory();
  ReentrancyGuard busy;
  SignalsBlocked blocked;
  Locked locked(signals.lock);
  for (int signal = 1; signal < kSignals; signal++) {
    KernelAction action;
    if (!signals.lacks_stack[signal] || sys::failed(set_kernel_action(signal, nullptr, &action)))
      continue;
    action.flags |= SA_ONSTACK;
    set_kernel_action(signal, &action, nullptr);
    if (is_table_own)
      signals.lacks_stack[signal] = false;
  }
  if (!is_table_own)
    return;
  __atomic_store_n(&signals.program_has_stack, true, __ATOMIC_RELAXED);
  if (signals.keeps_faults)
    install_on_fault(signals.told[SIGSEGV]);
}

bool hides_fault_stack() {
  return has_fault_stack() && !__atomic_load_n(&signals.program_has_stack, __ATOMIC_RELAXED);
}

namespace {

bool blocks(int signal) {
  uint64_t blocked = 0;
  sys::call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&blocked, sizeof blocked);
  return blocked >> (signal - 1) & 1;
}

bool is_ours(int signal) {
  SignalsBlocked blocked;
  Locked locked(signals.lock);
  return is_still_ours(signal);
}

// The profile is ended, and the kernel has the default.
void end_and_set_default(int signal) {
  const int saved = errno;
  finish(ASSAY_END_SIGNAL, signal);
  errno = saved;
  SignalsBlocked blocked;
  Locked locked(signals.lock);
  const KernelAction fallback = {};
  set_kernel_action(signal, &fallback, nullptr);
  signals.ours[signal] = false;
}

bool can_end_by(int signal) {
  return ends_program(signal) && owns_memory() && is_recording() && !this_thread.busy &&
         !(signal == SIGUSR2 && runtime.options.usr2);
}

} // namespace
} // namespace assay

using namespace assay;

// A handler of the program's has its turn, and where it returns, the default has.
ASSAY_EXPORT void ASSAY_NAME(abort)(void) {
  find_real_functions();
  if (this_thread.busy) // a handler that interrupted the runtime
    finish(ASSAY_END_SIGNAL, SIGABRT);
  if (can_end_by(SIGABRT)) {
    if (!is_ours(SIGABRT)) {
      uint64_t set = 1ULL << (SIGABRT - 1);
      sys::call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&set, 0, sizeof set);
      real.raise(SIGABRT);
    }
    end_and_set_default(SIGABRT);
  }
  real.abort();
  __builtin_unreachable();
}

ASSAY_EXPORT int ASSAY_NAME(raise)(int signal) {
  find_real_functions();
  if (can_end_by(signal) && is_ours(signal) && !blocks(signal))
    end_and_set_default(signal);
  return real.raise(signal);
}

ASSAY_SIGNAL_FUNCTIONS_AS(change_action, ASSAY_EXPORT, ASSAY_NAME)
