// Handlers that a program sets by libc (handlers.cc). Who calls the kernel without libc is not covered.

#include "runtime/relocated/relocated.h"

#include "runtime/core/system/signal_functions.h"
#include "runtime/core/system/syscall.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>

namespace assay::relocated {
namespace {

int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);

bool is_function(const struct sigaction &action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

int change(int number, const struct sigaction *action, struct sigaction *before) {
  if (!real_sigaction)
    real_sigaction = (decltype(real_sigaction))dlsym(RTLD_NEXT, "sigaction");
  if (!takes_handlers(number))
    return real_sigaction(number, action, before);
  const Handler old_handler = handler_of(number);
  struct sigaction ours, old;
  if (action && is_function(*action)) {
    ours = *action;
    relocated::set_handler(number, action->sa_sigaction);
    ours.sa_sigaction = on_signal;
    action = &ours;
  }
  const int result = real_sigaction(number, action, &old);
  if (result != 0) {
    relocated::set_handler(number, old_handler);
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
