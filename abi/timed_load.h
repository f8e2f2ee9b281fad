// A load that is timed with the processor's counter of cycles. The tool measures each level of the
// memory hierarchy with it, and the handler in a program each load of a sample: both with the same
// instructions, so that what they cost themselves is in both.
#pragma once

#include <stdint.h>

// Defines uint32_t NAME(const void *from) in assembly: cycles, or UINT32_MAX if control comes to
// FAILED. A fault of the load has its pc between BEGIN and END.
#define ASSAY_TIMED_LOAD(name, begin, end, failed)                                                 \
  __asm__(".text\n.p2align 6\n.hidden " name ", " begin ", " end ", " failed "\n.globl " name      \
          ", " begin ", " end ", " failed "\n.type " name ", @function\n" name ":\n"               \
          "lfence\n rdtsc\n lfence\n mov %eax, %ecx\n" begin ": movzbl (%rdi), %eax\n" end ":\n"   \
          "lfence\n rdtsc\n sub %ecx, %eax\n ret\n" failed ": mov $-1, %eax\n ret\n.size " name    \
          ", . - " name "\n")
