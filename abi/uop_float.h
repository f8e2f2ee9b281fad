// What the expressions of uops.def call: floating point, of SSE and of x87. It rounds and flushes as the
// processor is set when it is called; not includable from BPF.
#pragma once

#include "abi/uop_integer.h"

UOP_FUNCTION double uop_double(uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
}
UOP_FUNCTION uint64_t uop_double_bits(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
UOP_FUNCTION float uop_float(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float x;
  __builtin_memcpy(&x, &low, 4);
  return x;
}
UOP_FUNCTION uint64_t uop_float_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
UOP_FUNCTION uint64_t uop_quiet(uint64_t bits, uint64_t w) {
  return bits | (w == 8 ? 1ULL << 51 : 1ULL << 22);
}
// What an invalid operation yields, whatever the compiler of this makes of it.
UOP_FUNCTION uint64_t uop_nan_of(uint64_t bits, uint64_t w) {
  return uop_is_nan(bits, w) ? (w == 8 ? 0xfff8000000000000 : 0xffc00000) : bits;
}
// What DAZ makes of a denormal: zero with its sign. Without it a denormal does not equal 0.
UOP_FUNCTION uint64_t uop_flush(uint64_t bits, uint64_t w) {
  int is_zero = w == 8 ? uop_double(bits) == 0 : uop_float(bits) == 0;
  return is_zero ? bits & 1ULL << (8 * w - 1) : bits;
}
// 0: nearest, 1: down, 2: up, 3: toward zero, 4: as the processor is set.
UOP_FUNCTION double uop_whole(double x, int mode) {
  switch (mode) {
  case 0: return __builtin_roundeven(x);
  case 1: return __builtin_floor(x);
  case 2: return __builtin_ceil(x);
  case 3: return __builtin_trunc(x);
  default: return __builtin_rint(x);
  }
}
UOP_FUNCTION uint64_t uop_float_root1(uint64_t a, uint64_t w) {
  if (uop_is_nan(a, w))
    return uop_quiet(a, w);
  return uop_nan_of(w == 8 ? uop_double_bits(__builtin_sqrt(uop_double(a)))
                           : uop_float_bits(__builtin_sqrtf(uop_float(a))),
                    w);
}
UOP_FUNCTION uint64_t uop_float_fma1(uint64_t a, uint64_t b, uint64_t c, uint64_t w) {
  uint64_t nan = uop_is_nan(a, w) ? a : uop_is_nan(b, w) ? b : c;
  if (uop_is_nan(nan, w))
    return uop_quiet(nan, w);
  return uop_nan_of(
      w == 8 ? uop_double_bits(__builtin_fma(uop_double(a), uop_double(b), uop_double(c)))
             : uop_float_bits(__builtin_fmaf(uop_float(a), uop_float(b), uop_float(c))),
      w);
}
UOP_FUNCTION uint64_t uop_float_round1(uint64_t a, uint64_t w, int mode) {
  if (uop_is_nan(a, w))
    return uop_quiet(a, w);
  a = uop_flush(a, w);
  return w == 8 ? uop_double_bits(uop_whole(uop_double(a), mode))
                : uop_float_bits((float)uop_whole(uop_float(a), mode));
}
// The 32 predicates of VCMPPD: bits 0 and 1 choose, bit 2 negates; above 7, equality or order turn
// round for what is unordered; bit 4 says only whether it signals.
UOP_FUNCTION int uop_float_holds(double x, double y, int unordered, int predicate) {
  switch (predicate & 15) {
  case 0: return x == y;
  case 1: return x < y;
  case 2: return x <= y;
  case 3: return unordered;
  case 4: return !(x == y);
  case 5: return !(x < y);
  case 6: return !(x <= y);
  case 7: return !unordered;
  case 8: return unordered || x == y;
  case 9: return unordered || x < y;
  case 10: return unordered || x <= y;
  case 11: return 0;
  case 12: return !unordered && x != y;
  case 13: return x >= y;
  case 14: return x > y;
  default: return 1;
  }
}
UOP_FUNCTION uint64_t uop_float_compare1(uint64_t a, uint64_t b, uint64_t w, int predicate) {
  int unordered = uop_is_nan(a, w) || uop_is_nan(b, w);
  int holds = w == 8 ? uop_float_holds(uop_double(a), uop_double(b), unordered, predicate)
                     : uop_float_holds(uop_float(a), uop_float(b), unordered, predicate);
  return holds ? uop_mask(w) : 0;
}
// e(low element) | e(high element) << 32, or e of the one element of 8 bytes.
#define UOP_FLOATS(name, parameters, low, high)                                                    \
  UOP_FUNCTION uint64_t uop_float_##name parameters {                                              \
    return w == 8 ? uop_float_##name##1 low                                                        \
                  : (uop_float_##name##1 low & 0xffffffff) | uop_float_##name##1 high << 32;       \
  }
UOP_FLOATS(root, (uint64_t a, uint64_t w), (a, w), (a >> 32, w))
UOP_FLOATS(fma, (uint64_t a, uint64_t b, uint64_t c, uint64_t w), (a, b, c, w),
           (a >> 32, b >> 32, c >> 32, w))
UOP_FLOATS(round, (uint64_t a, uint64_t w, int mode), (a, w, mode), (a >> 32, w, mode))
UOP_FLOATS(compare, (uint64_t a, uint64_t b, uint64_t w, int predicate), (a, b, w, predicate),
           (a >> 32, b >> 32, w, predicate))
#undef UOP_FLOATS

UOP_FUNCTION uint64_t uop_float_flags(uint64_t a, uint64_t b, uint64_t w) {
  if (uop_is_nan(a, w) || uop_is_nan(b, w))
    return 0x45;
  double x = w == 8 ? uop_double(a) : uop_float(a), y = w == 8 ? uop_double(b) : uop_float(b);
  return x == y ? 0x40 : x < y ? 1 : 0;
}
UOP_FUNCTION uint64_t uop_float_from_int(uint64_t a, uint64_t w, int bytes) {
  int64_t x = uop_signed(a, (unsigned)bytes);
  return w == 8 ? uop_double_bits((double)x) : uop_float_bits((float)x);
}
UOP_FUNCTION uint64_t uop_float_from_unsigned(uint64_t a, uint64_t w, int bytes) {
  a &= uop_mask((unsigned)bytes);
  if (a == 0) // rounding down, a compiler's sequence would yield -0
    return 0;
  return w == 8 ? uop_double_bits((double)a) : uop_float_bits((float)a);
}
// What does not fit is the integer whose top bit alone is set.
UOP_FUNCTION uint64_t uop_float_to_int(uint64_t a, int bytes, uint64_t w, int cut) {
  double x = bytes == 8 ? uop_double(a) : uop_float(a), most = w == 8 ? 0x1p63 : 0x1p31;
  x = uop_whole(x, cut ? 3 : 4);
  if (!(x >= -most && x < most))
    return 1ULL << (8 * w - 1);
  return (uint64_t)(int64_t)x & uop_mask(w);
}
UOP_FUNCTION uint64_t uop_float_widen(uint64_t a) {
  if (uop_is_nan(a & 0xffffffff, 4))
    return (a & 0x80000000) << 32 | 0x7ff8000000000000 | (a & 0x3fffff) << 29;
  return uop_double_bits((double)uop_float(a));
}
UOP_FUNCTION uint64_t uop_float_narrow(uint64_t a) {
  if (uop_is_nan(a, 8))
    return (a >> 32 & 0x80000000) | 0x7fc00000 | (a >> 29 & 0x3fffff);
  return uop_float_bits((float)uop_double(a));
}
// Arithmetic of two elements: a NaN is passed on, the first one before the second.
#define UOP_FLOAT_NAN(x_bits, y_bits, width, otherwise)                                            \
  (uop_is_nan(x_bits, width)   ? uop_quiet(x_bits, width)                                          \
   : uop_is_nan(y_bits, width) ? uop_quiet(y_bits, width)                                          \
                               : uop_nan_of(otherwise, width))
#define UOP_FLOAT_RAW(x_bits, y_bits, width, otherwise) uop_flush(otherwise, width)
#define UOP_FLOATS_OF(how, e)                                                                      \
  __extension__({                                                                                  \
    uint64_t r_ = 0;                                                                               \
    if (w == 8) {                                                                                  \
      double x = uop_double(a), y = uop_double(b);                                                 \
      r_ = how(a, b, 8, uop_double_bits(e));                                                       \
    } else {                                                                                       \
      for (unsigned k_ = 0; k_ < 64; k_ += 32) {                                                   \
        uint64_t a_ = a >> k_ & 0xffffffff, b_ = b >> k_ & 0xffffffff;                             \
        float x = uop_float(a_), y = uop_float(b_);                                                \
        r_ |= how(a_, b_, 4, uop_float_bits(e)) << k_;                                             \
      }                                                                                            \
    }                                                                                              \
    r_;                                                                                            \
  })
#define FLOAT2(e) UOP_FLOATS_OF(UOP_FLOAT_NAN, e)
#define FLOAT2_RAW(e) UOP_FLOATS_OF(UOP_FLOAT_RAW, e)

// A value of x87 as its two words, by way of memory.
union uop_x87 {
  uint64_t words[2];
  long double value;
};
UOP_FUNCTION long double uop_x87_of(uint64_t low, uint64_t high) {
  union uop_x87 both;
  both.words[0] = low;
  both.words[1] = high;
  return both.value;
}
UOP_FUNCTION uint64_t uop_x87_word(long double x, int high) {
  union uop_x87 both;
  both.words[1] = 0;
  both.value = x;
  return high ? both.words[1] & 0xffff : both.words[0];
}
UOP_FUNCTION uint64_t uop_x87_from_float(uint64_t a, uint64_t w, int high) {
  return uop_x87_word(w == 8 ? (long double)uop_double(a) : (long double)uop_float(a), high);
}
UOP_FUNCTION uint64_t uop_x87_to_float(uint64_t a, uint64_t b, uint64_t w) {
  long double x = uop_x87_of(a, b);
  return w == 8 ? uop_double_bits((double)x) : uop_float_bits((float)x);
}
// The processor's own instructions: C knows neither what they make of NaNs nor of what does not fit.
UOP_FUNCTION uint64_t uop_x87_to_int(uint64_t a, uint64_t b, uint64_t w, int cut) {
  long double x = uop_x87_of(a, b);
  int16_t two;
  int32_t four;
  int64_t eight;
  switch (w) {
  case 2:
    if (cut)
      __asm__("fisttps %0" : "=m"(two) : "t"(x) : "st");
    else
      __asm__("fistps %0" : "=m"(two) : "t"(x) : "st");
    return (uint16_t)two;
  case 4:
    if (cut)
      __asm__("fisttpl %0" : "=m"(four) : "t"(x) : "st");
    else
      __asm__("fistpl %0" : "=m"(four) : "t"(x) : "st");
    return (uint32_t)four;
  default:
    if (cut)
      __asm__("fisttpll %0" : "=m"(eight) : "t"(x) : "st");
    else
      __asm__("fistpll %0" : "=m"(eight) : "t"(x) : "st");
    return (uint64_t)eight;
  }
}
UOP_FUNCTION long double uop_x87_root(long double x) {
  __asm__("fsqrt" : "+t"(x));
  return x;
}
UOP_FUNCTION long double uop_x87_round(long double x) {
  __asm__("frndint" : "+t"(x));
  return x;
}
