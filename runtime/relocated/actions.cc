// Handlers that are set by a system call of moved code, which comes here in its place: all of a statically linked executable, and libc's own
// of others, which nothing that stands in front of libc sees (preloaded/signals.cc).

#include "runtime/relocated/from_moved_code.h"
#include "runtime/relocated/relocated.h"

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

bool is_function(const Action &action) {
  return (uint64_t)action.handler != (uint64_t)SIG_DFL &&
         (uint64_t)action.handler != (uint64_t)SIG_IGN;
}

// The program's memory, which may not be there; the kernel says so then.
bool copy(void *to, const void *from, long bytes, long call) {
  iovec ours = {to, (size_t)bytes}, theirs = {(void *)from, (size_t)bytes};
  return sys::call(call, sys::thread_id(), (long)&ours, 1, (long)&theirs, 1, 0) == bytes;
}

long set(int number, const Action *action, Action *before, long mask_bytes) {
  Action given, ours, old;
  const bool is_known = takes_handlers(number) && mask_bytes == sizeof given.mask &&
                        (!action || copy(&given, action, sizeof given, SYS_process_vm_readv));
  if (!is_known || (action && given.handler == on_signal))
    return sys::call(SYS_rt_sigaction, number, (long)action, (long)before, mask_bytes);
  const Handler old_handler = handler_of(number);
  if (action) {
    ours = given;
    if (is_function(given)) {
      set_handler(number, given.handler);
      ours.handler = on_signal;
    }
  }
  const long result = sys::call(SYS_rt_sigaction, number, action ? (long)&ours : 0,
                                before ? (long)&old : 0, mask_bytes);
  if (result != 0) {
    set_handler(number, old_handler);
    return result;
  }
  if (before && old.handler == on_signal)
    old.handler = old_handler;
  constexpr long kFault = -14; // EFAULT
  return !before || copy(&old, before, sizeof old, SYS_process_vm_writev) ? 0 : kFault;
}

} // namespace

extern "C" [[gnu::visibility("hidden")]] void assay_set_action(const MovedRegisters *registers) {
  thread_log.rax = (uint64_t)set((int)registers->rdi, (const Action *)registers->rsi,
                                 (Action *)registers->rdx, (long)registers->r10);
}

ASSAY_FROM_MOVED_CODE("assay_act", "assay_set_action");

} // namespace assay::relocated
