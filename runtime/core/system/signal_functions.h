// The functions of libc by which a program sets handlers, for those who stand in front of them: all
// come down to one that changes an action, as sigaction does.
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdint.h>

#include "runtime/core/system/syscall.h"

namespace assay {

constexpr int kSignals = 65;
using SignalHandler = void (*)(int);
using ChangeAction = int (*)(int number, const struct sigaction *action, struct sigaction *before);

inline bool signal_interrupts[kSignals]; // siginterrupt

inline SignalHandler set_handler(ChangeAction change, int number, SignalHandler handler,
                                 int flags) {
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction action = {}, before = {};
  action.sa_handler = handler;
  const bool interrupted = number > 0 && number < kSignals && signal_interrupts[number];
  action.sa_flags = flags & SA_RESTART && interrupted ? 0 : flags;
  if (flags & SA_RESTART)
    *(uint64_t *)&action.sa_mask |= 1ULL << ((number - 1) & 63);
  return change(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

inline int set_interrupt(ChangeAction change, int number, bool interrupt) {
  struct sigaction action;
  if (change(number, nullptr, &action) != 0)
    return -1;
  signal_interrupts[number] = interrupt;
  action.sa_flags = interrupt ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  return change(number, &action, nullptr);
}

// The handler, and whether the signal is blocked: SIG_HOLD stands for that.
inline SignalHandler set_disposition(ChangeAction change, int number, SignalHandler handler) {
  if (number <= 0 || number >= kSignals) {
    errno = EINVAL;
    return SIG_ERR;
  }
  const uint64_t bit = 1ULL << (number - 1);
  sigset_t set = {}, blocked = {};
  *(uint64_t *)&set = bit;
  struct sigaction action = {}, before = {};
  action.sa_handler = handler;
  const bool holds = handler == SIG_HOLD;
  if (change(number, holds ? nullptr : &action, &before) != 0 ||
      sys::failed(sys::call(SYS_rt_sigprocmask, holds ? SIG_BLOCK : SIG_UNBLOCK, (long)&set,
                            (long)&blocked, sizeof bit)))
    return SIG_ERR;
  return *(const uint64_t *)&blocked & bit ? SIG_HOLD : before.sa_handler;
}

inline int ignore_signal(ChangeAction change, int number) {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  return change(number, &action, nullptr);
}

} // namespace assay

// Defines them; `change` is a ChangeAction, `declared` how each begins, `name` a macro that makes
// its symbol of its name.
#define ASSAY_SIGNAL_FUNCTIONS_AS(change, declared, name)                                          \
  declared int name(sigaction)(int number, const struct sigaction *action,                         \
                               struct sigaction *before) {                                         \
    return change(number, action, before);                                                         \
  }                                                                                                \
  ASSAY_SIGNAL_FUNCTION(change, declared, name(signal), SA_RESTART)                                \
  ASSAY_SIGNAL_FUNCTION(change, declared, name(bsd_signal), SA_RESTART)                            \
  ASSAY_SIGNAL_FUNCTION(change, declared, name(ssignal), SA_RESTART)                               \
  ASSAY_SIGNAL_FUNCTION(change, declared, name(sysv_signal), (int)SA_RESETHAND | SA_NODEFER)       \
  ASSAY_SIGNAL_FUNCTION(change, declared, name(__sysv_signal), (int)SA_RESETHAND | SA_NODEFER)     \
  declared int name(siginterrupt)(int number, int interrupt) {                                     \
    return assay::set_interrupt(change, number, interrupt != 0);                                   \
  }                                                                                                \
  declared assay::SignalHandler name(sigset)(int number, assay::SignalHandler handler) {           \
    return assay::set_disposition(change, number, handler);                                        \
  }                                                                                                \
  declared int name(sigignore)(int number) {                                                       \
    return assay::ignore_signal(change, number);                                                   \
  }
#define ASSAY_SIGNAL_FUNCTION(change, declared, symbol, flags)                                     \
  declared assay::SignalHandler symbol(int number, assay::SignalHandler handler) {                 \
    return assay::set_handler(change, number, handler, flags);                                     \
  }

// The same under their own names.
#define ASSAY_OWN_NAME(name) name
#define ASSAY_SIGNAL_FUNCTIONS(change)                                                             \
  ASSAY_SIGNAL_FUNCTIONS_AS(change, extern "C" [[gnu::visibility("default")]], ASSAY_OWN_NAME)
