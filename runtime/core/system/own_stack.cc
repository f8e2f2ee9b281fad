// One stack for all threads, under a lock: what runs here (the last dump, a dump before exec, the start of a fork's
// child) is rare. A stack for each thread was refused: it would cost every thread address space for work that
// it never does.
//
// Signals are blocked meanwhile: a handler of the program's may need more stack than ours has, and one that leaves
// by siglongjmp would leave the lock behind.

#include "runtime/core/system/own_stack.h"

#include <signal.h>

#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

constexpr uint64_t kBytes = 256 << 10;

struct {
  SpinLock lock;
  uint8_t *low;
} constinit own = {};

bool is_on_it() {
  uint64_t here = (uint64_t)__builtin_frame_address(0);
  return here >= (uint64_t)own.low && here < (uint64_t)own.low + kBytes;
}

uint64_t all_but_faults() {
  constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
  uint64_t set = ~0ULL;
  for (int fault : kFaults)
    set &= ~(1ULL << (fault - 1));
  return set;
}

void call_on(uint8_t *top, void (*work)(void *), void *argument) {
  asm volatile("mov %%rsp, %%rbx\n\t"
               "mov %[top], %%rsp\n\t"
               "call *%[work]\n\t"
               "mov %%rbx, %%rsp"
               : "+D"(argument)
               : [top] "r"(top), [work] "r"(work)
               : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
                 "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                 "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
}

} // namespace

void create_own_stack() {
  own.low = (uint8_t *)reserve(kBytes);
}

void run_on_own_stack(void (*work)(void *), void *argument) {
  if (!own.low || this_thread.is_helper || is_on_it()) {
    work(argument);
    return;
  }
  uint64_t blocked = all_but_faults(), before;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&blocked, (long)&before, sizeof before);
  own.lock.lock();
  call_on(own.low + kBytes - 64, work, argument);
  own.lock.unlock();
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
}

void reset_own_stack_in_child() {
  own.lock.reset();
}

} // namespace assay
