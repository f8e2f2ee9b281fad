// What reads an argument register, and what only looks as if it did. The code is what gcc and clang
// make of such functions.
#include "values/argument_registers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#define CODE(name, text)                                                                           \
  asm(".text\n.intel_syntax noprefix\nassay_test_" #name ":\n" text "\nassay_test_" #name          \
      "_end:\n.att_syntax\n");                                                                     \
  extern "C" const char assay_test_##name[], assay_test_##name##_end[];

CODE(reads, "mov rax, [rsi + 8]; add rax, rdi; mov [rsp - 8], rdx; cmovne rax, r8; ret")
CODE(setcc, "cmp rdi, 5; sete al; setg cl; setl dh; or eax, ecx; add eax, edx; ret")
CODE(moves, "mov cl, 3; mov dx, 7; mov sil, [rdi]; movzx eax, cl; add eax, edx; add eax, esi; ret")
CODE(made, "xor ecx, ecx; sub edx, edx; sbb r8, r8; or r9, -1; add rcx, rdx; add rcx, r8; add "
           "rcx, r9; lea rax, [rdi + rcx]; ret")
CODE(scans, "bsr ecx, edi; bsf rdx, rsi; mov eax, ecx; ret")
CODE(pushes, "push rcx; push r9; mov eax, edi; pop r9; pop rcx; ret")
CODE(calls_kernel, "mov eax, 0x27; syscall; ret")
CODE(counts_for_kernel, "lea rdx, [rsi + 1]; mov r10, rcx; mov eax, 0x11; syscall; ret")
CODE(passes, "mov [rsp - 24], rdi; mov [rsp - 16], rsi; mov [rsp - 8], rdx; lea rax, [rsp - 24]; "
             "call rax")
// gcc -O2, of which no vector argument is taken.
CODE(variadic, "lea rax, [rsp + 8]; mov [rsp - 0x28], rsi; mov [rsp - 0x40], rax; lea rax, [rsp - "
               "0x30]; mov [rsp - 0x20], rdx; mov [rsp - 0x18], rcx; mov [rsp - 0x10], r8; mov "
               "[rsp - 8], r9; mov dword ptr [rsp - 0x48], 8; test rdi, rdi; ret")
// The same of two arguments, so that not all are saved.
CODE(few, "lea rax, [rsp + 8]; mov [rsp - 0x28], rsi; mov [rsp - 0x40], rax; lea rax, [rsp - "
          "0x30]; mov [rsp - 0x20], rdx; mov dword ptr [rsp - 0x48], 8; mov [rsp - 0x38], rax; "
          "lea rax, [rdi + 1]; ret")
// clang, and gcc without optimisation: al says how many vector registers there are.
CODE(vectors, "push rbp; mov rbp, rsp; sub rsp, 0x60; mov [rbp - 0x60], rdi; mov [rbp - 0x28], "
              "r8; mov [rbp - 0x20], r9; test al, al; je 1f; movaps [rbp - 0x18], xmm0; 1: mov "
              "rax, [rbp - 0x60]; call rax")

namespace {

std::string arguments(const char *begin, const char *end) {
  binary::Decoder decoder;
  const binary::RegisterSet set = values::argument_registers(
      decoder, std::as_bytes(std::span(begin, end)), reinterpret_cast<uint64_t>(begin));
  std::string names;
  const std::pair<unsigned, const char *> kNames[] = {
      {ASSAY_REG_RDI, "rdi"}, {ASSAY_REG_RSI, "rsi"}, {ASSAY_REG_RDX, "rdx"},
      {ASSAY_REG_RCX, "rcx"}, {ASSAY_REG_R8, "r8"},   {9, "r9"}};
  for (const auto &[reg, name] : kNames)
    if (set & binary::register_bit(reg))
      names += (names.empty() ? "" : " ") + std::string(name);
  return names;
}

#define ARGUMENTS(name) arguments(assay_test_##name, assay_test_##name##_end)

TEST(ArgumentRegisters, WhatIsReadBeforeItIsWritten) {
  EXPECT_EQ(ARGUMENTS(reads), "rdi rsi rdx r8");
  EXPECT_EQ(ARGUMENTS(passes), "rdi rsi rdx"); // side by side, as a save area is
}

TEST(ArgumentRegisters, WhatIsWrittenInPart) {
  EXPECT_EQ(ARGUMENTS(setcc), "rdi");
  EXPECT_EQ(ARGUMENTS(moves), "rdi");
}

TEST(ArgumentRegisters, WhatIsNamedAndNotAsked) {
  EXPECT_EQ(ARGUMENTS(made), "rdi");
  EXPECT_EQ(ARGUMENTS(scans), "rdi rsi");
  EXPECT_EQ(ARGUMENTS(pushes), "rdi");
  EXPECT_EQ(ARGUMENTS(calls_kernel), ""); // getpid() has none
  EXPECT_EQ(ARGUMENTS(counts_for_kernel), "rsi rcx");
}

TEST(ArgumentRegisters, WhatVariadicFunctionsSave) {
  EXPECT_EQ(ARGUMENTS(variadic), "rdi");
  EXPECT_EQ(ARGUMENTS(few), "rdi");
  EXPECT_EQ(ARGUMENTS(vectors), "rdi");
}

} // namespace
