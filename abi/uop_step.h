// What a micro-op yields: the expressions of uops.def, executed. Pure: nothing is read but the operands
// and, by floating point, how the processor rounds; nothing is written; memory and control are the
// caller's. C11 and C++, includable from BPF, where FLOAT and LANE_LONG ones yield nothing.
#pragma once

#include "abi/uop.h"
#include "abi/uop_integer.h"
#if defined(__bpf__) && !defined(ASSAY_UOP_INTEGERS)
#define ASSAY_UOP_INTEGERS // who includes this does without FLOAT and LANE_LONG micro-ops, which yield nothing
#endif
#ifndef ASSAY_UOP_INTEGERS
#include "abi/uop_float.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define Z(x) ((uint64_t)(x) & uop_mask(w))
#define S(x) uop_signed((uint64_t)(x), w)
#define UOP_EACH(type, element, y_of, e)                                                           \
  __extension__({                                                                                  \
    uint64_t r_ = 0;                                                                               \
    UOP_EACH_ELEMENT(k_, w) {                                                                      \
      type x = element(a >> k_), y = y_of;                                                         \
      (void)y;                                                                                     \
      r_ |= Z(e) << k_;                                                                            \
    }                                                                                              \
    r_;                                                                                            \
  })
#define EACH(e) UOP_EACH(uint64_t, Z, Z(b >> k_), e)
#define EACH_SIGNED(e) UOP_EACH(int64_t, S, S(b >> k_), e)
#define EACH_OF(c, e) UOP_EACH(uint64_t, Z, Z(b >> k_), UOP_WITH_Z(c, e))
#define UOP_WITH_Z(c, e)                                                                           \
  __extension__({                                                                                  \
    uint64_t z = Z((c) >> k_);                                                                     \
    e;                                                                                             \
  })
#define EACH_COUNT(count, e) UOP_EACH(uint64_t, Z, (count), e)

// The value of a micro-op that has one (not of ASSAY_UOP_EFFECT ones, and 0 of lane_clear).
UOP_FUNCTION uint64_t assay_uop_value(const struct assay_uop *uop, uint64_t a, uint64_t b,
                                      uint64_t c) {
  uint64_t w = uop->width, shift = uop->shift;
  int32_t i = uop->i;
  (void)shift;
  switch (uop->op) {
#define ASSAY_UOP(name, operands, expression, meaning)                                             \
  case ASSAY_UOP_##name: return Z(expression);
#define ASSAY_UOP_WHOLE(name, operands, expression, meaning)                                       \
  case ASSAY_UOP_##name: return (uint64_t)(expression);
#ifdef ASSAY_UOP_INTEGERS
#define ASSAY_UOP_FLOAT(name, operands, expression, meaning)
#define ASSAY_UOP_LANE_LONG(name, operands, expression, meaning)
#endif
#include "abi/uops.def"
  default: return 0;
  }
}

#ifndef ASSAY_UOP_INTEGERS
// The same with the processor's floating point as two registers say, for FLOAT micro-ops; its own is
// put back. Exceptions are masked. The operands pass through what changes it, so that no compiler computes
// before or after.
static __attribute__((noinline, unused)) uint64_t assay_uop_value_in(uint64_t mxcsr,
                                                                     uint64_t x87_control,
                                                                     const struct assay_uop *uop,
                                                                     uint64_t a, uint64_t b,
                                                                     uint64_t c) {
  uint32_t sse = (uint32_t)(mxcsr & ASSAY_MXCSR_CONTROL) | 0x1f80, sse_before;
  uint16_t x87 = (uint16_t)(x87_control | 0x3f), x87_before;
  __asm__ volatile("stmxcsr %3\n\tldmxcsr %5\n\tfnstcw %4\n\tfldcw %6"
                   : "+r"(a), "+r"(b), "+r"(c), "=m"(sse_before), "=m"(x87_before)
                   : "m"(sse), "m"(x87)
                   : "memory");
  uint64_t result = assay_uop_value(uop, a, b, c);
  __asm__ volatile("ldmxcsr %1\n\tfldcw %2"
                   : "+r"(result)
                   : "m"(sse_before), "m"(x87_before)
                   : "memory");
  return result;
}

// Executes an X87 micro-op, or x87_flags, on registers, by enum assay_uop_register.
static __attribute__((noinline, unused)) void assay_uop_x87(const struct assay_uop *uop,
                                                            uint64_t *registers) {
  uint16_t ours, theirs = (uint16_t)(registers[ASSAY_REG_X87_CONTROL] | 0x3f);
  volatile long double first = uop_x87_of(registers[uop->a], registers[uop->a + 1]);
  volatile long double second = first;
  if (uop->b != ASSAY_REG_ZERO)
    second = uop_x87_of(registers[uop->b], registers[uop->b + 1]);
  __asm__ volatile("fnstcw %0\n\tfldcw %1" : "=m"(ours) : "m"(theirs) : "memory");
  long double x = first, y = second;
  volatile long double result = x;
  int equal = x == y, less = x < y, ordered = equal || less || x > y;
  switch (uop->op) {
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_X87(name, operands, expression, meaning)                                         \
  case ASSAY_UOP_##name: result = expression; break;
#include "abi/uops.def"
  default: break;
  }
  __asm__ volatile("fldcw %0" : : "m"(ours) : "memory");
  if (uop->op == ASSAY_UOP_x87_flags) {
    registers[uop->dst] = !ordered ? 0x45 : equal ? 0x40 : less ? 1 : 0;
    return;
  }
  long double made = result;
  registers[uop->dst] = uop_x87_word(made, 0);
  registers[uop->dst + 1] = uop_x87_word(made, 1);
}
#endif

// Executes x87_turn: the stack of x87 turned by `by`.
UOP_FUNCTION void assay_uop_x87_turn(uint64_t *registers, uint64_t by) {
  uint64_t before[16];
  for (unsigned i = 0; i < 16; i++)
    before[i] = registers[ASSAY_REG_X87 + i];
  for (unsigned i = 0; i < 16; i++)
    registers[ASSAY_REG_X87 + i] = before[(i + 2 * by) & 15];
  registers[ASSAY_REG_X87_TOP] = (registers[ASSAY_REG_X87_TOP] + by) & 7;
}

#undef Z
#undef S
#undef EACH
#undef EACH_OF
#undef UOP_WITH_Z
#undef EACH_SIGNED
#undef EACH_COUNT
#undef UOP_EACH
#undef FLOAT2
#undef FLOAT2_RAW
#undef UOP_FLOATS_OF
#undef UOP_FLOAT_NAN
#undef UOP_FLOAT_RAW

#ifdef __cplusplus
}
#endif
