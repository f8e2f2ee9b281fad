// Timers go off in threads that wait as well, and the kernel ends some waits with EINTR whatever
// handler comes, even those of a handler with SA_RESTART. A program that is sampled must not see
// that: so our signal is blocked in these waits. What comes meanwhile is taken behind them. Of perf
// events, which come only while a thread runs its own code, nothing has to be done.
//
// Not covered: who makes these calls without libc, and sockets with a timeout of their own (SO_RCVTIMEO).

#include "runtime/upcall/upcall.h"

#include "runtime/core/system/syscall.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <time.h>

namespace assay::upcall {
namespace {

bool waits_are_hidden() {
  return shared.header && is_timer() && mine && mine->has_timers;
}

// The mask that a call sets while it waits.
class WaitMask {
public:
  explicit WaitMask(const sigset_t *given) : given_(given) {
    if (!given || !waits_are_hidden())
      return;
    changed_ = *given;
    sigaddset(&changed_, kTimerSignal);
    given_ = &changed_;
  }
  WaitMask(const WaitMask &) = delete;
  WaitMask &operator=(const WaitMask &) = delete;
  const sigset_t *set() const { return given_; }

private:
  const sigset_t *given_;
  sigset_t changed_;
};

} // namespace

HiddenWait::HiddenWait() : blocks_(waits_are_hidden()) {
  const uint64_t ours = uint64_t{1} << (kTimerSignal - 1);
  if (blocks_)
    sys::call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&ours, (long)&before_, 8);
}
HiddenWait::~HiddenWait() {
  if (blocks_)
    sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before_, 0, 8);
}

} // namespace assay::upcall

using namespace assay::upcall;

// A function whose arguments and result go through as they are.
#define ASSAY_WAIT(result, name, parameters, arguments)                                            \
  ASSAY_EXPORT result name parameters {                                                            \
    static result(*real) parameters;                                                               \
    real_function(real, #name);                                                                    \
    HiddenWait hidden;                                                                             \
    return real arguments;                                                                         \
  }

ASSAY_WAIT(int, poll, (struct pollfd * files, nfds_t count, int timeout), (files, count, timeout))
ASSAY_WAIT(int, select,
           (int count, fd_set *reads, fd_set *writes, fd_set *errors, struct timeval *timeout),
           (count, reads, writes, errors, timeout))
ASSAY_WAIT(int, epoll_wait, (int epoll, struct epoll_event *events, int most, int timeout),
           (epoll, events, most, timeout))
ASSAY_WAIT(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
ASSAY_WAIT(int, clock_nanosleep,
           (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
           (clock, flags, time, left))
ASSAY_WAIT(int, usleep, (unsigned microseconds), (microseconds))
ASSAY_WAIT(unsigned, sleep, (unsigned seconds), (seconds))
ASSAY_WAIT(int, pause, (), ())
ASSAY_WAIT(int, sem_wait, (sem_t * semaphore), (semaphore))
ASSAY_WAIT(int, sem_timedwait, (sem_t * semaphore, const struct timespec *time), (semaphore, time))
ASSAY_WAIT(int, sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *time),
           (semaphore, clock, time))
ASSAY_WAIT(int, semop, (int id, struct sembuf *operations, size_t count), (id, operations, count))
ASSAY_WAIT(int, semtimedop,
           (int id, struct sembuf *operations, size_t count, const struct timespec *time),
           (id, operations, count, time))
ASSAY_WAIT(ssize_t, msgrcv, (int id, void *message, size_t size, long type, int flags),
           (id, message, size, type, flags))
ASSAY_WAIT(int, msgsnd, (int id, const void *message, size_t size, int flags),
           (id, message, size, flags))

ASSAY_EXPORT int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                       const sigset_t *mask) {
  static int (*real)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
  const WaitMask wait(mask);
  HiddenWait hidden;
  return real_function(real, "ppoll")(files, count, timeout, wait.set());
}
ASSAY_EXPORT int pselect(int count, fd_set *reads, fd_set *writes, fd_set *errors,
                         const struct timespec *timeout, const sigset_t *mask) {
  static int (*real)(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
  const WaitMask wait(mask);
  HiddenWait hidden;
  return real_function(real, "pselect")(count, reads, writes, errors, timeout, wait.set());
}
ASSAY_EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout,
                             const sigset_t *mask) {
  static int (*real)(int, struct epoll_event *, int, int, const sigset_t *);
  const WaitMask wait(mask);
  HiddenWait hidden;
  return real_function(real, "epoll_pwait")(epoll, events, most, timeout, wait.set());
}
ASSAY_EXPORT int epoll_pwait2(int epoll, struct epoll_event *events, int most,
                              const struct timespec *timeout, const sigset_t *mask) {
  static int (*real)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
  const WaitMask wait(mask);
  HiddenWait hidden;
  return real_function(real, "epoll_pwait2")(epoll, events, most, timeout, wait.set());
}
ASSAY_EXPORT int sigsuspend(const sigset_t *mask) {
  static int (*real)(const sigset_t *);
  const WaitMask wait(mask);
  HiddenWait hidden;
  return real_function(real, "sigsuspend")(wait.set());
}
