// Handlers that a program sets by libc (handlers.cc). Who calls the kernel without libc is not covered.
//
// What samples a program that was built with -pg is a handler that libc sets for itself, past all that stands in front
// of it. It is given its stand-in behind the call that sets it, or where the runtime begins: of C++ programs, the init
// function of the first library sets it. The timer's first signal comes milliseconds later.

#include "runtime/core/system/export.h"
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

using Word = unsigned long;

template <typename Function> Function *next(const char *name) {
  return (Function *)dlsym(RTLD_NEXT, name);
}

bool sets_profiler; // a program without -pg may be forbidden to ask for handlers

} // namespace

// The handler that the kernel has, as if the program set it now.
void take_over_profiler() {
  struct sigaction action;
  if (sets_profiler && change(SIGPROF, nullptr, &action) == 0 && is_function(handler_in(action)))
    change(SIGPROF, &action, nullptr);
}

static void profiler_is_set() {
  sets_profiler = true;
  take_over_profiler();
}

} // namespace assay::relocated

using namespace assay::relocated;

ASSAY_SIGNAL_FUNCTIONS(change)

// Of <sys/gmon.h> and <unistd.h>.
ASSAY_EXPORT void __monstartup(Word low, Word high) {
  next<void(Word, Word)>("__monstartup")(low, high);
  profiler_is_set();
}
ASSAY_EXPORT void monstartup(Word low, Word high) {
  next<void(Word, Word)>("monstartup")(low, high);
  profiler_is_set();
}
ASSAY_EXPORT void moncontrol(int mode) {
  next<void(int)>("moncontrol")(mode);
  profiler_is_set();
}
ASSAY_EXPORT int profil(unsigned short *counts, size_t bytes, size_t offset, unsigned scale) {
  const int result =
      next<int(unsigned short *, size_t, size_t, unsigned)>("profil")(counts, bytes, offset, scale);
  profiler_is_set();
  return result;
}
