// Handlers of signals. The kernel is given on_signal in place of the program's handler, which it calls; what the program is told comes
// from a table (handlers.cc). They are set through libc (preloaded/signals.cc) or by a system call (actions.cc).
#pragma once

#include "runtime/relocated/relocated.h"

namespace assay::relocated {

using Handler = void (*)(int, siginfo_t *, void *);
bool takes_handlers(int number);
Handler handler_of(int number);
void set_handler(int number, Handler handler);
void on_signal(int number, siginfo_t *info, void *context);

inline bool is_function(Handler handler) {
  return (uint64_t)handler != (uint64_t)SIG_DFL && (uint64_t)handler != (uint64_t)SIG_IGN;
}

inline Handler &handler_in(struct sigaction &action) {
  return action.sa_sigaction;
}

// Does as `set(action, before)`, which returns 0 if it has set, with the program's handlers on either side. handler_in(Action &) says where an
// Action has its handler.
template <class Action, class Set>
long change_action(int number, const Action *action, Action *before, Set set) {
  const Handler old_handler = handler_of(number);
  Action ours;
  if (action) {
    ours = *action;
    if (const Handler handler = handler_in(ours); is_function(handler)) {
      set_handler(number, handler);
      handler_in(ours) = on_signal;
    }
    action = &ours;
  }
  const long result = set(action, before);
  if (result != 0)
    set_handler(number, old_handler);
  else if (before && handler_in(*before) == on_signal)
    handler_in(*before) = old_handler;
  return result;
}

} // namespace assay::relocated
