// A SIGSEGV handler, in this mode only: 64 KiB of shadow, which cover 512 KiB of program, at a time. Every
// other fault is put back to what the program had, and happens again. Refused: stopping the program (it
// must run), and a test at each access (everybody would pay for it).
//
// A program that installs its own SIGSEGV handler afterwards, or blocks the signal, loses this help.

#include "runtime/core/lazy_shadow.h"

#include <signal.h>

#include "runtime/core/syscall.h"

namespace assay {
namespace {

constexpr uint64_t kPiece = 64 << 10;

// The kernel's own layout: libc's sigaction is not ours to call.
struct KernelAction {
  void (*handler)(int, siginfo_t *, void *);
  uint64_t flags;
  void (*restorer)();
  uint64_t mask;
};
constexpr uint64_t kRestorer = 0x04000000; // SA_RESTORER

struct {
  uint64_t begin, end;
  KernelAction before;
} constinit lazy = {};

[[gnu::naked]] void return_from_signal() {
  asm volatile("mov %0, %%eax\n\tsyscall" : : "i"(SYS_rt_sigreturn));
}

void on_fault(int, siginfo_t *info, void *) {
  uint64_t address = (uint64_t)info->si_addr;
  if (address >= lazy.begin && address < lazy.end) {
    long at = sys::map((void *)(address & ~(kPiece - 1)), kPiece, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
    if (!sys::failed(at) || at == -17 /* another thread was faster */)
      return;
  }
  sys::call(SYS_rt_sigaction, SIGSEGV, (long)&lazy.before, 0, 8);
}

} // namespace

void map_on_touch(uint64_t begin, uint64_t end) {
  lazy.begin = begin;
  lazy.end = end;
  KernelAction action = {on_fault, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | kRestorer, return_from_signal, 0};
  sys::call(SYS_rt_sigaction, SIGSEGV, (long)&action, (long)&lazy.before, 8);
}

} // namespace assay
