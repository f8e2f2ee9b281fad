// Handlers that a program sets by libc (handlers.cc). Who calls the kernel without libc is not covered.

#include "runtime/relocated/handlers.h"

#include "runtime/core/system/signal_functions.h"
#include "runtime/core/system/syscall.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>

namespace assay::relocated {
namespace {

int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);

int change(int number, const struct sigaction *action, struct sigaction *before) {
  if (!real_sigaction)
    real_sigaction = (decltype(real_sigaction))dlsym(RTLD_NEXT, "sigaction");
  if (!takes_handlers(number))
    return real_sigaction(number, action, before);
  return (int)change_action(number, action, before,
                            [&](const struct sigaction *given, struct sigaction *old) {
                              return real_sigaction(number, given, old);
                            });
}

} // namespace
} // namespace assay::relocated

using namespace assay::relocated;

ASSAY_SIGNAL_FUNCTIONS(change)
