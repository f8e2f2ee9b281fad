// Functions of libc that make threads and processes, and whose system calls are not in moved code:
// no table says where the one of clone lies, and libc as a whole may not have been asked for
// (--module). What begins there asks whose streams its memory names, as moved code does.

#include "runtime/core/system/export.h"
#include "runtime/relocated/relocated.h"

#include <dlfcn.h>

extern "C" [[gnu::visibility("hidden")]] void assay_thread_begun();

namespace assay::relocated {
namespace {

using Work = int (*)(void *);

// At the top of the new stack.
struct Begin {
  Work work;
  void *argument;
};

int (*real_clone)(Work, void *, int, void *, void *, void *, void *);
int (*real_fork)();

template <class Function> void find(Function &function, const char *name) {
  if (!function)
    function = (Function)dlsym(RTLD_NEXT, name);
}

int begin(void *at) {
  const Begin begin = *(const Begin *)at;
  assay_thread_begun();
  return begin.work(begin.argument);
}

} // namespace

// Early: handlers may call _Fork, and may not call dlsym.
void find_beginning_functions() {
  find(real_clone, "clone");
  find(real_fork, "_Fork");
}

ASSAY_EXPORT int assay_clone(Work work, void *stack, int flags, void *argument, void *parent_id,
                             void *tls, void *child_id) asm("clone");
int assay_clone(Work work, void *stack, int flags, void *argument, void *parent_id, void *tls,
                void *child_id) {
  find(real_clone, "clone");
  if (!ring || !work || !stack)
    return real_clone(work, stack, flags, argument, parent_id, tls, child_id);
  auto *top = (Begin *)((uint64_t)stack & ~15ULL) - 1;
  *top = {work, argument};
  return real_clone(begin, top, flags, top, parent_id, tls, child_id);
}

ASSAY_EXPORT int assay_only_fork() asm("_Fork");
int assay_only_fork() {
  find(real_fork, "_Fork");
  const int child = real_fork();
  if (child == 0 && ring)
    assay_thread_begun();
  return child;
}

} // namespace assay::relocated
