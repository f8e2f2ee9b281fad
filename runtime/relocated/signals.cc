// A handler may interrupt a snippet of moved code, which holds a position that it has not written back. So what handlers log goes to
// streams of their own; where each interrupted its thread is known. The kernel gets our handler in place of the program's;
// what the program is told comes from a table. Who calls the kernel without libc is not covered.

#include "runtime/relocated/relocated.h"

#include "runtime/core/system/syscall.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>

#define ASSAY_EXPORT extern "C" [[gnu::visibility("default")]]

namespace assay::relocated {
namespace {

constexpr int kSignals = 65;
using Handler = void (*)(int);
using LongHandler = void (*)(int, siginfo_t *, void *);

LongHandler handlers[kSignals];
bool interrupts[kSignals]; // siginterrupt

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

Handler set_handler(int number, Handler handler, int flags) {
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction action = {}, before = {};
  action.sa_handler = handler;
  const bool interrupted = number > 0 && number < kSignals && interrupts[number];
  action.sa_flags = flags & SA_RESTART && interrupted ? 0 : flags;
  if (flags & SA_RESTART)
    sigaddset(&action.sa_mask, number);
  return change(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

} // namespace
} // namespace assay::relocated

using namespace assay::relocated;

ASSAY_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
  return change(number, action, before);
}
ASSAY_EXPORT Handler signal(int number, Handler handler) {
  return set_handler(number, handler, SA_RESTART);
}
ASSAY_EXPORT Handler bsd_signal(int number, Handler handler) {
  return set_handler(number, handler, SA_RESTART);
}
ASSAY_EXPORT Handler ssignal(int number, Handler handler) {
  return set_handler(number, handler, SA_RESTART);
}
ASSAY_EXPORT Handler sysv_signal(int number, Handler handler) {
  return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER);
}
ASSAY_EXPORT Handler __sysv_signal(int number, Handler handler) {
  return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER);
}
ASSAY_EXPORT int siginterrupt(int number, int interrupt) {
  struct sigaction action;
  if (change(number, nullptr, &action) != 0)
    return -1;
  interrupts[number] = interrupt != 0;
  action.sa_flags = interrupt ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  return change(number, &action, nullptr);
}
