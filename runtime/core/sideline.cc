// Made by a raw clone and not by pthread_create: a pthread would push glibc off its single-threaded
// fast paths (stdio, malloc, atomics) and appear in the program's own counts. Such a thread may not
// call libc; it needs a TLS block of its own all the same, because the runtime's thread_local
// variables are reached through the fs register. All its signals are blocked, so that none of the
// program's is delivered to it.

#include "runtime/core/sideline.h"

#include <sched.h>
#include <signal.h>

#include "runtime/core/arena.h"
#include "runtime/core/losses.h"
#include "runtime/core/syscall.h"
#include "runtime/core/thread.h"

namespace assay {
namespace {

constexpr size_t kStackBytes = 256 << 10;

struct {
  uint64_t (*work)();
  uint8_t *stack;
  uint8_t *tls;
  uint32_t stop; // futex
  bool snapshot_wanted;
  uint32_t running; // futex: 1 while the thread exists; the kernel clears it at its end
} constinit sideline = {};

uint64_t thread_pointer() {
  uint64_t fs;
  asm("mov %%fs:0, %0" : "=r"(fs));
  return fs;
}

[[noreturn]] void run_sideline() {
  this_thread.busy = 1;
  while (!__atomic_load_n(&sideline.stop, __ATOMIC_ACQUIRE))
    sys::futex_wait(&sideline.stop, 0, sideline.work() * 1000);
  for (;;)
    sys::call(SYS_exit, 0);
}

bool prepare() {
  if (sideline.tls)
    return true;
  // The block must reach down to our own variable, however large the program's TLS is.
  uint64_t below = thread_pointer() - (uint64_t)&this_thread;
  below = (below + 8191) & ~4095ULL;
  sideline.stack = (uint8_t *)reserve(kStackBytes);
  uint8_t *block = (uint8_t *)reserve(below + 4096);
  if (!sideline.stack || !block)
    return false;
  sideline.tls = block + below;
  *(void **)sideline.tls = sideline.tls; // the thread pointer finds itself at fs:0
  return true;
}

} // namespace

void start_sideline(uint64_t (*work)()) {
  sideline.work = work;
  sideline.stop = 0;
  if (!prepare()) {
    count_loss(ASSAY_LOSS_no_sideline, 1);
    return;
  }
  uint64_t all = ~0ULL, before;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, 8);
  sideline.running = 1;
  long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
               CLONE_SETTLS | CLONE_CHILD_CLEARTID;
  uint8_t *top = sideline.stack + kStackBytes - 64;
  long result;
  register long r10 asm("r10") = (long)&sideline.running;
  register long r8 asm("r8") = (long)sideline.tls;
  // The new thread starts on an empty stack: it must leave by a jump, not by a return.
  asm volatile("syscall\n\t"
               "test %%eax, %%eax\n\t"
               "jnz 1f\n\t"
               "xor %%ebp, %%ebp\n\t"
               "call *%[run]\n\t"
               "ud2\n"
               "1:"
               : "=a"(result)
               : "a"(SYS_clone), "D"(flags), "S"(top), "d"(0), "r"(r10),
                 "r"(r8), [run] "b"(&run_sideline)
               : "rcx", "r11", "memory", "cc");
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, 8);
  if (sys::failed(result)) {
    sideline.running = 0;
    count_loss(ASSAY_LOSS_no_sideline, 1);
  }
}

void stop_sideline() {
  __atomic_store_n(&sideline.stop, 1, __ATOMIC_RELEASE);
  sys::futex_wake(&sideline.stop);
  while (uint32_t running = __atomic_load_n(&sideline.running, __ATOMIC_ACQUIRE))
    sys::call(SYS_futex, (long)&sideline.running,
              0 /* FUTEX_WAIT: the kernel's wake is not private */, running, 0);
}

void request_snapshot() {
  __atomic_store_n(&sideline.snapshot_wanted, true, __ATOMIC_RELEASE);
  sys::futex_wake(&sideline.stop); // it looks at stop again, finds 0 and works
}

bool take_snapshot_request() {
  return __atomic_exchange_n(&sideline.snapshot_wanted, false, __ATOMIC_ACQ_REL);
}

void forget_sideline() {
  sideline.running = 0;
  sideline.stop = 0;
}

} // namespace assay
