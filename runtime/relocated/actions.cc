// Handlers that are set by a system call of moved code, which comes here in its place: all of a
// statically linked executable, and libc's own of others, which nothing that stands in front of
// libc sees (preloaded/signals.cc).

#include "runtime/relocated/from_moved_code.h"
#include "runtime/relocated/handlers.h"

#include "runtime/core/system/syscall.h"

namespace assay::relocated {
namespace {

// What the kernel takes and gives.
struct Action {
  Handler handler;
  uint64_t flags;
  void *restorer;
  uint64_t mask;
};

Handler &handler_in(Action &action) {
  return action.handler;
}

// Of the program's memory, which may not be there. What is asked of the kernel does nothing, and is
// what the program asks itself: other calls may be forbidden.
bool is_readable(const Action *action) {
  constexpr long kInvalid = -22; // EINVAL; else EFAULT
  return sys::call(SYS_rt_sigaction, SIGKILL, (long)action, 0, sizeof action->mask) == kInvalid;
}

long set(int number, const Action *action, Action *before, long mask_bytes) {
  const bool is_known = takes_handlers(number) && mask_bytes == sizeof action->mask &&
                        (!action || is_readable(action));
  auto set_here = [&](const Action *given, Action *old) {
    return sys::call(SYS_rt_sigaction, number, (long)given, (long)old, mask_bytes);
  };
  if (!is_known || (action && is_stand_in(action->handler)))
    return set_here(action, before);
  return change_action(number, action, before, set_here);
}

} // namespace

extern "C" [[gnu::visibility("hidden")]] void assay_set_action(const MovedRegisters *registers) {
  thread_log.rax = (uint64_t)set((int)registers->rdi, (const Action *)registers->rsi,
                                 (Action *)registers->rdx, (long)registers->r10);
}

ASSAY_FROM_MOVED_CODE("assay_act", "assay_set_action");

} // namespace assay::relocated
