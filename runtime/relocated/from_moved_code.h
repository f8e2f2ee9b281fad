// How moved code comes to the runtime, and goes on: with the place to go on at in rax, the
// program's rax in the thread's log (AssayThreadLog::rax), and all other registers and the stack as
// the program left them. Handlers may unwind the stack at any instruction.
#pragma once

#include <stdint.h>

namespace assay::relocated {

// What the function is given, by address.
struct MovedRegisters {
  uint64_t r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, flags, go_on;
};

} // namespace assay::relocated

#define ASSAY_PUSH(register)                                                                       \
  " push %" register "\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset %" register ", 0\n"
#define ASSAY_POP(register)                                                                        \
  " pop %" register "\n .cfi_adjust_cfa_offset -8\n .cfi_restore %" register "\n"
// A symbol that moved code goes to; it calls the function with that name.
// clang-format off: the pushes lay out MovedRegisters, the last one first.
#define ASSAY_FROM_MOVED_CODE(name, made_by)                          \
  asm(".text\n .hidden " name "\n .globl " name "\n"                  \
      " .type " name ", @function\n" name ":\n .cfi_startproc\n"      \
      " .cfi_def_cfa %rsp, 0\n .cfi_register %rip, %rax\n"            \
      " lea -128(%rsp), %rsp\n .cfi_adjust_cfa_offset 128\n" /* the red zone */ \
      " push %rax\n .cfi_adjust_cfa_offset 8\n"                       \
      " .cfi_rel_offset %rip, 0\n" /* go_on */                        \
      " pushfq\n .cfi_adjust_cfa_offset 8\n"                          \
      ASSAY_PUSH("rcx")                                               \
      ASSAY_PUSH("rdx")                                               \
      ASSAY_PUSH("rbx")                                               \
      ASSAY_PUSH("rbp")                                               \
      ASSAY_PUSH("rsi")                                               \
      ASSAY_PUSH("rdi")                                               \
      ASSAY_PUSH("r8")                                                \
      ASSAY_PUSH("r9")                                                \
      ASSAY_PUSH("r10")                                               \
      ASSAY_PUSH("r11")                                               \
      " mov %rsp, %rbx\n .cfi_def_cfa_register %rbx\n"                \
      " mov %rsp, %rdi\n and $-16, %rsp\n cld\n"                      \
      " call " made_by "\n"                                           \
      " mov %rbx, %rsp\n .cfi_def_cfa_register %rsp\n"                \
      ASSAY_POP("r11")                                                \
      ASSAY_POP("r10")                                                \
      ASSAY_POP("r9")                                                 \
      ASSAY_POP("r8")                                                 \
      ASSAY_POP("rdi")                                                \
      ASSAY_POP("rsi")                                                \
      ASSAY_POP("rbp")                                                \
      ASSAY_POP("rbx")                                                \
      ASSAY_POP("rdx")                                                \
      ASSAY_POP("rcx")                                                \
      " popfq\n .cfi_adjust_cfa_offset -8\n"                          \
      " pop %rax\n .cfi_adjust_cfa_offset -8\n"                       \
      " .cfi_register %rip, %rax\n"                                   \
      " lea 128(%rsp), %rsp\n .cfi_adjust_cfa_offset -128\n"          \
      " jmp *%rax\n .cfi_endproc\n .size " name ", . - " name "\n")
// clang-format on
