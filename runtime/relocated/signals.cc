// A handler may interrupt a snippet of moved code, which holds a position that it has not written back. So what handlers log goes to
// streams of their own; where each interrupted its thread is known. The kernel gets our handler in place of the program's;
// what the program is told comes from a table. Who calls the kernel without libc is not covered.

#include "runtime/relocated/relocated.h"

#include "runtime/core/system/signal_functions.h"
#include "runtime/core/system/syscall.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>

namespace assay::relocated {
namespace {

using LongHandler = void (*)(int, siginfo_t *, void *);

LongHandler handlers[kSignals];

int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);

void on_signal(int number, siginfo_t *info, void *context) {
  LongHandler handler = __atomic_load_n(&handlers[number], __ATOMIC_ACQUIRE);
  SavedLog saved;
  begin_handler(saved);
  handler(number, info, context);
  end_handler(saved);
}

bool is_function(const struct sigaction &action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

int change(int number, const struct sigaction *action, struct sigaction *before) {
  if (!real_sigaction)
    real_sigaction = (decltype(real_sigaction))dlsym(RTLD_NEXT, "sigaction");
  if (!ring || ring->log == ASSAY_LOG_nothing || number <= 0 || number >= kSignals)
    return real_sigaction(number, action, before);
  const LongHandler old_handler = handlers[number];
  struct sigaction ours, old;
  if (action && is_function(*action)) {
    ours = *action;
    __atomic_store_n(&handlers[number], (LongHandler)action->sa_sigaction, __ATOMIC_RELEASE);
    ours.sa_sigaction = on_signal;
    action = &ours;
  }
  const int result = real_sigaction(number, action, &old);
  if (result != 0) {
    handlers[number] = old_handler;
    return result;
  }
  if (before) {
    *before = old;
    if (old.sa_sigaction == on_signal)
      before->sa_sigaction = old_handler;
  }
  return 0;
}

} // namespace
} // namespace assay::relocated

using namespace assay::relocated;

ASSAY_SIGNAL_FUNCTIONS(change)
