// Sandboxes that a program asks for through libc, which may not be moved (--module). What syscall()
// calls may return twice, or on another stack: it is gone to by a jump, with the stack as it was.

#include "runtime/relocated/sandbox.h"
#include "runtime/core/system/export.h"

#include "runtime/core/system/syscall.h"

#include <dlfcn.h>
#include <sys/prctl.h>

namespace assay::relocated {

using Control = int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long);
static Control real_prctl;
extern "C" {
[[gnu::visibility("hidden")]] void *assay_real_syscall;
}

// Before code of the program runs: it may call these where dlsym may not be called.
void find_sandbox_functions() {
  real_prctl = (Control)dlsym(RTLD_NEXT, "prctl");
  assay_real_syscall = dlsym(RTLD_NEXT, "syscall");
}

extern "C" [[gnu::visibility("hidden")]] void
assay_before_syscall(uint64_t number, uint64_t first, uint64_t second, uint64_t third) {
  before_sandbox(number, first, second, third);
}

ASSAY_EXPORT int assay_prctl(int option, unsigned long second, unsigned long third,
                             unsigned long fourth, unsigned long fifth) asm("prctl");
int assay_prctl(int option, unsigned long second, unsigned long third, unsigned long fourth,
                unsigned long fifth) {
  before_sandbox(SYS_prctl, (uint64_t)option, second, third);
  return real_prctl(option, second, third, fourth, fifth);
}

static_assert(SYS_seccomp == 317 && SYS_prctl == 157);
asm(".text\n.globl syscall\n.type syscall, @function\nsyscall:\n"
    " .cfi_startproc\n"
    " cmp $317, %edi\n je 1f\n cmp $157, %edi\n je 1f\n"
    "0: jmp *assay_real_syscall(%rip)\n"
    "1: push %rdi\n .cfi_adjust_cfa_offset 8\n push %rsi\n .cfi_adjust_cfa_offset 8\n"
    " push %rdx\n .cfi_adjust_cfa_offset 8\n push %rcx\n .cfi_adjust_cfa_offset 8\n"
    " push %r8\n .cfi_adjust_cfa_offset 8\n push %r9\n .cfi_adjust_cfa_offset 8\n"
    " sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n"
    " call assay_before_syscall\n"
    " add $8, %rsp\n .cfi_adjust_cfa_offset -8\n"
    " pop %r9\n .cfi_adjust_cfa_offset -8\n pop %r8\n .cfi_adjust_cfa_offset -8\n"
    " pop %rcx\n .cfi_adjust_cfa_offset -8\n pop %rdx\n .cfi_adjust_cfa_offset -8\n"
    " pop %rsi\n .cfi_adjust_cfa_offset -8\n pop %rdi\n .cfi_adjust_cfa_offset -8\n"
    " jmp 0b\n .cfi_endproc\n.size syscall, . - syscall\n");

} // namespace assay::relocated
