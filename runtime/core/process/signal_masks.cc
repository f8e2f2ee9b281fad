// Where a shadow is mapped as it is touched (lazy_shadow.h), SIGSEGV may be in no mask of the
// program's: its code would die of the first counter that it touches there. Outside that mode the
// functions do nothing but call libc's.
//
// Not covered: masks of setcontext, threads that libc starts for SIGEV_THREAD, and the system calls themselves.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "runtime/core/process/interpose.h"
#include "runtime/core/shadow/lazy_shadow.h"
#include "runtime/core/system/kernel_signal.h"

namespace assay {
namespace {

// A mask as the program gave it, or a copy without SIGSEGV.
class UsableMask {
public:
  explicit UsableMask(const sigset_t *given) : given_(given) {
    find_real_functions();
    if (!given || !is_shadow_lazy())
      return;
    less_ = *given;
    remove_signal(less_, SIGSEGV);
    given_ = &less_;
  }
  operator const sigset_t *() const { return given_; } // NOLINT: stands for the mask
  UsableMask(const UsableMask &) = delete;
  UsableMask &operator=(const UsableMask &) = delete;

private:
  const sigset_t *given_;
  sigset_t less_;
};

template <typename Change>
int change_mask(Change change, int how, const sigset_t *set, sigset_t *before) {
  if (how == SIG_UNBLOCK)
    return change(how, set, before);
  return change(how, UsableMask(set), before);
}

// Of the old functions, whose masks are the first 32 signals.
int change_old_mask(int how, int mask) {
  sigset_t set = {}, before = {};
  *(uint64_t *)&set = (uint32_t)mask;
  find_real_functions();
  return change_mask(real.sigprocmask, how, &set, &before) == 0 ? (int)*(const uint64_t *)&before
                                                                : -1;
}

} // namespace
} // namespace assay

using namespace assay;

ASSAY_EXPORT int ASSAY_NAME(sigprocmask)(int how, const sigset_t *set, sigset_t *before) {
  find_real_functions();
  return change_mask(real.sigprocmask, how, set, before);
}
ASSAY_EXPORT int ASSAY_NAME(pthread_sigmask)(int how, const sigset_t *set, sigset_t *before) {
  find_real_functions();
  return change_mask(real.pthread_sigmask, how, set, before);
}
ASSAY_EXPORT int ASSAY_NAME(sighold)(int signal) {
  if (signal <= 0 || signal >= NSIG || belongs_to_libc(signal)) {
    errno = EINVAL;
    return -1;
  }
  sigset_t set = {};
  *(uint64_t *)&set = 1ULL << (signal - 1);
  return ASSAY_NAME(sigprocmask)(SIG_BLOCK, &set, nullptr);
}
ASSAY_EXPORT int ASSAY_NAME(sigblock)(int mask) {
  return change_old_mask(SIG_BLOCK, mask);
}
ASSAY_EXPORT int ASSAY_NAME(sigsetmask)(int mask) {
  return change_old_mask(SIG_SETMASK, mask);
}

ASSAY_EXPORT int ASSAY_NAME(sigsuspend)(const sigset_t *mask) {
  const UsableMask usable(mask);
  return real.sigsuspend(usable);
}
ASSAY_EXPORT int ASSAY_NAME(ppoll)(pollfd *files, nfds_t count, const timespec *timeout,
                                   const sigset_t *mask) {
  const UsableMask usable(mask);
  return real.ppoll(files, count, timeout, usable);
}
ASSAY_EXPORT int ASSAY_NAME(pselect)(int count, fd_set *read, fd_set *write, fd_set *special,
                                     const timespec *timeout, const sigset_t *mask) {
  const UsableMask usable(mask);
  return real.pselect(count, read, write, special, timeout, usable);
}
ASSAY_EXPORT int ASSAY_NAME(epoll_pwait)(int file, epoll_event *events, int count, int timeout_ms,
                                         const sigset_t *mask) {
  const UsableMask usable(mask);
  return real.epoll_pwait(file, events, count, timeout_ms, usable);
}
