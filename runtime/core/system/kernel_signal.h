// Signal actions as the kernel takes them: libc's sigaction is interposed by us.
#pragma once

#include <signal.h>

#include "runtime/core/system/syscall.h"

namespace assay {

// 32 and 33 are libc's own.
inline bool belongs_to_libc(int signal) {
  return signal == 32 || signal == 33;
}

inline void remove_signal(sigset_t &set, int signal) {
  *(uint64_t *)&set &= ~(1ULL << (signal - 1));
}

inline void add_signal(sigset_t &set, int signal) {
  *(uint64_t *)&set |= 1ULL << (signal - 1);
}

inline bool has_signal(const sigset_t &set, int signal) {
  return *(const uint64_t *)&set >> (signal - 1) & 1;
}

struct KernelAction {
  void (*handler)(int, siginfo_t *, void *);
  uint64_t flags;
  void (*restorer)();
  uint64_t mask;
};

[[gnu::naked]] inline void return_from_signal() {
  asm volatile("mov %0, %%eax\n\tsyscall" : : "i"(SYS_rt_sigreturn));
}

// An action with a handler of ours; it runs on the program's alternate stack where there is one.
inline KernelAction kernel_action(void (*handler)(int, siginfo_t *, void *), uint64_t more_flags) {
  constexpr uint64_t kRestorer = 0x04000000; // SA_RESTORER
  return {handler, SA_SIGINFO | SA_ONSTACK | kRestorer | more_flags, return_from_signal, 0};
}

// Either may be null.
inline long set_kernel_action(int signal, const KernelAction *action, KernelAction *before) {
  return sys::call(SYS_rt_sigaction, signal, (long)action, (long)before, 8);
}

// No signal comes to this thread in this scope: for locks that a handler of the program may take, too.
class SignalsBlocked {
public:
  SignalsBlocked() {
    uint64_t all = ~0ULL;
    sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before_, sizeof before_);
  }
  ~SignalsBlocked() {
    sys::call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before_, 0, sizeof before_);
  }
  SignalsBlocked(const SignalsBlocked &) = delete;
  SignalsBlocked &operator=(const SignalsBlocked &) = delete;

private:
  uint64_t before_;
};

} // namespace assay
