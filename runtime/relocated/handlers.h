// Handlers of signals. In place of each handler of the program the kernel is given a function of
// ours that stands in for it: what the thread does meanwhile is logged apart. Each handler has a
// stand-in of its own, so that the handler changes at once with its flags and mask, wherever the
// signal arrives meanwhile. Handlers are set through libc (preloaded/signals.cc) or by a system
// call (actions.cc).
#pragma once

#include "runtime/relocated/relocated.h"

namespace assay::relocated {

using Handler = void (*)(int, siginfo_t *, void *);
bool takes_handlers(int number);
// What the kernel is given for the program's handler of this signal.
Handler stand_in_of(int number, Handler handler);
bool is_stand_in(Handler handler);
// The program's handler, if this is a stand-in; others as they are.
Handler program_handler(int number, Handler handler);

inline bool is_function(Handler handler) {
  return (uint64_t)handler != (uint64_t)SIG_DFL && (uint64_t)handler != (uint64_t)SIG_IGN;
}

inline Handler &handler_in(struct sigaction &action) {
  return action.sa_sigaction;
}

// Does as `set(action, before)`, which returns 0 if it has set, with the program's handlers on
// either side. handler_in(Action &) says where an Action has its handler.
template <class Action, class Set>
long change_action(int number, const Action *action, Action *before, Set set) {
  Action ours;
  if (action) {
    ours = *action;
    if (const Handler handler = handler_in(ours); is_function(handler))
      handler_in(ours) = stand_in_of(number, handler);
    action = &ours;
  }
  const long result = set(action, before);
  if (result == 0 && before)
    handler_in(*before) = program_handler(number, handler_in(*before));
  return result;
}

} // namespace assay::relocated
