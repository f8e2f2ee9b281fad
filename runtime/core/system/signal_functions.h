// The functions of libc by which a program sets handlers, for preloaded libraries that stand in front of them: all come down to one that changes an
// action, as sigaction does.
#pragma once

#include <errno.h>
#include <signal.h>

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
    sigaddset(&action.sa_mask, number);
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

} // namespace assay

#define ASSAY_SIGNAL_FUNCTION(name, change, flags)                                                 \
  extern "C" [[gnu::visibility("default")]] assay::SignalHandler name(                             \
      int number, assay::SignalHandler handler) {                                                  \
    return assay::set_handler(change, number, handler, flags);                                     \
  }

// Defines them; `change` is a ChangeAction.
#define ASSAY_SIGNAL_FUNCTIONS(change)                                                             \
  extern "C" [[gnu::visibility("default")]] int sigaction(                                         \
      int number, const struct sigaction *action, struct sigaction *before) {                      \
    return change(number, action, before);                                                         \
  }                                                                                                \
  ASSAY_SIGNAL_FUNCTION(signal, change, SA_RESTART)                                                \
  ASSAY_SIGNAL_FUNCTION(bsd_signal, change, SA_RESTART)                                            \
  ASSAY_SIGNAL_FUNCTION(ssignal, change, SA_RESTART)                                               \
  ASSAY_SIGNAL_FUNCTION(sysv_signal, change, (int)SA_RESETHAND | SA_NODEFER)                       \
  ASSAY_SIGNAL_FUNCTION(__sysv_signal, change, (int)SA_RESETHAND | SA_NODEFER)                     \
  extern "C" [[gnu::visibility("default")]] int siginterrupt(int number, int interrupt) {          \
    return assay::set_interrupt(change, number, interrupt != 0);                                   \
  }
