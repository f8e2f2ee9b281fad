// What a micro-op yields: the expressions of uops.def, executed. Pure: nothing is read but the operands,
// nothing is written; memory and control are the caller's. C11 and C++, includable from BPF, where the
// floating-point ones yield nothing.
//
// Arithmetic is that of the manual, not of C: shifts by the width of a type, divisions that overflow
// and conversions of what does not fit are spelled out.
#pragma once

#include "abi/uop.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UOP_FUNCTION static inline __attribute__((always_inline, unused))

UOP_FUNCTION uint64_t uop_mask(uint64_t w) {
  return ~0ULL >> (64 - 8 * w);
}
UOP_FUNCTION int64_t uop_signed(uint64_t x, uint64_t w) {
  return (int64_t)(x << (64 - 8 * w)) >> (64 - 8 * w);
}
// The bits of a shift count that count.
UOP_FUNCTION uint64_t uop_count(uint64_t w) {
  return w == 8 ? 63 : 31;
}

UOP_FUNCTION uint64_t uop_mul_high64(uint64_t a, uint64_t b) {
  uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32);
#ifdef __bpf__
  __asm__("" : "+r"(middle)); // or clang sees what this is, and BPF has no product of 128 bits
#endif
  uint64_t other = a0 * b1 + (middle & 0xffffffff);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}
UOP_FUNCTION uint64_t uop_mul_high(uint64_t a, uint64_t b, uint64_t w) {
  return w == 8 ? uop_mul_high64(a, b) : a * b >> 8 * w;
}
UOP_FUNCTION uint64_t uop_mul_high_signed(int64_t a, int64_t b, uint64_t w) {
  if (w != 8)
    return (uint64_t)(a * b >> 8 * w);
  return uop_mul_high64((uint64_t)a, (uint64_t)b) - (a < 0 ? (uint64_t)b : 0) -
         (b < 0 ? (uint64_t)a : 0);
}

// high:low / divisor, its quotient or remainder. 0 where the processor would fault: divisor 0, a
// quotient that does not fit.
UOP_FUNCTION uint64_t uop_divide(uint64_t low, uint64_t high, uint64_t divisor, uint64_t w,
                                 int remainder) {
  if (divisor == 0 || high >= divisor)
    return 0;
  if (w != 8) {
    low |= high << 8 * w;
    high = 0;
  }
  if (high == 0)
    return remainder ? low % divisor : low / divisor;
  uint64_t quotient = 0; // bit by bit: no 128-bit division in BPF
  for (int bit = 63; bit >= 0; bit--) {
    uint64_t carry = high >> 63;
    high = high << 1 | (low >> bit & 1);
    if (carry || high >= divisor) {
      high -= divisor;
      quotient |= 1ULL << bit;
    }
  }
  return remainder ? high : quotient;
}
UOP_FUNCTION uint64_t uop_divide_signed(uint64_t low, uint64_t high, int64_t divisor, uint64_t w,
                                        int remainder) {
  int negative = (int)(high >> (8 * w - 1) & 1);
  if (negative) { // the magnitude of the dividend
    low = (0 - low) & uop_mask(w);
    high = (~high + (low == 0)) & uop_mask(w);
  }
  uint64_t magnitude = divisor < 0 ? 0 - (uint64_t)divisor : (uint64_t)divisor;
  uint64_t result = uop_divide(low, high, magnitude, w, remainder);
  int negate = remainder ? negative : negative != (divisor < 0);
  return negate ? 0 - result : result;
}

UOP_FUNCTION uint64_t uop_rotate(uint64_t x, uint64_t count, uint64_t w) {
  count &= 8 * w - 1;
  return count ? (x << count | x >> (8 * w - count)) & uop_mask(w) : x;
}
// a shifted left by n, filled from the top of b. Of 16 bits, n above 16 is undefined.
UOP_FUNCTION uint64_t uop_double_shift(uint64_t a, uint64_t b, uint64_t n, uint64_t w) {
  if (n == 0)
    return a;
  return n < 8 * w ? a << n | b >> (8 * w - n) : n == 8 * w ? b : 0;
}
UOP_FUNCTION uint64_t uop_double_shift_right(uint64_t a, uint64_t b, uint64_t n, uint64_t w) {
  if (n == 0)
    return a;
  return n < 8 * w ? a >> n | b << (8 * w - n) : n == 8 * w ? b : 0;
}

UOP_FUNCTION uint64_t uop_byte_swap(uint64_t x, uint64_t w) {
  return __builtin_bswap64(x) >> (64 - 8 * w);
}
UOP_FUNCTION uint64_t uop_ones(uint64_t x) {
  x = x - (x >> 1 & 0x5555555555555555);
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  return ((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56;
}
UOP_FUNCTION uint64_t uop_trailing_zeros(uint64_t x) {
  return uop_ones(~x & (x - 1));
}
UOP_FUNCTION uint64_t uop_leading_zeros(uint64_t x) {
  for (unsigned shift = 1; shift < 64; shift *= 2)
    x |= x >> shift;
  return uop_ones(~x);
}
UOP_FUNCTION uint64_t uop_bit_field(uint64_t x, uint64_t control) {
  uint64_t start = control & 0xff, length = control >> 8 & 0xff;
  x = start < 64 ? x >> start : 0;
  return length < 64 ? x & ((1ULL << length) - 1) : x;
}
UOP_FUNCTION uint64_t uop_deposit(uint64_t x, uint64_t mask) {
  uint64_t result = 0;
  for (int bit = 0, taken = 0; bit < 64; bit++)
    if (mask >> bit & 1)
      result |= (x >> taken++ & 1) << bit;
  return result;
}
UOP_FUNCTION uint64_t uop_extract(uint64_t x, uint64_t mask) {
  uint64_t result = 0;
  for (int bit = 0, taken = 0; bit < 64; bit++)
    if (mask >> bit & 1)
      result |= (x >> bit & 1) << taken++;
  return result;
}
UOP_FUNCTION uint64_t uop_crc32(uint64_t crc, uint64_t data, int bytes) {
  crc &= 0xffffffff;
  for (int bit = 0; bit < 8 * bytes; bit++, data >>= 1)
    crc = crc >> 1 ^ ((crc ^ data) & 1 ? 0x82f63b78 : 0);
  return crc;
}

// PF, ZF and SF of a result of w bytes.
UOP_FUNCTION uint64_t uop_flags_result(uint64_t result, uint64_t w) {
  uint64_t flags = uop_ones(result & 0xff) & 1 ? 0 : 0x4;
  return flags | (result ? 0 : 0x40) | result >> (8 * w - 1) << 7;
}
UOP_FUNCTION uint64_t uop_flags_add(uint64_t a, uint64_t b, uint64_t sum, uint64_t w) {
  uint64_t carries = (a & b) | ((a | b) & ~sum), top = 8 * w - 1;
  return uop_flags_result(sum, w) | (carries >> top & 1) | ((a ^ b ^ sum) & 0x10) |
         ((a ^ sum) & (b ^ sum)) >> top << 11;
}
UOP_FUNCTION uint64_t uop_flags_sub(uint64_t a, uint64_t b, uint64_t difference, uint64_t w) {
  uint64_t borrows = (~a & b) | (~(a ^ b) & difference), top = 8 * w - 1;
  return uop_flags_result(difference, w) | (borrows >> top & 1) | ((a ^ b ^ difference) & 0x10) |
         ((a ^ b) & (a ^ difference)) >> top << 11;
}
UOP_FUNCTION uint64_t uop_shl_carry(uint64_t a, uint64_t n, uint64_t w) {
  uint64_t carry = n == 0 || n > 8 * w ? 0 : a >> (8 * w - n) & 1;
  uint64_t top = n < 8 * w ? (a << n) >> (8 * w - 1) & 1 : 0;
  return carry | (top ^ carry) << 11;
}
UOP_FUNCTION uint64_t uop_shr_carry(uint64_t a, uint64_t n, uint64_t w) {
  return (n ? a >> (n - 1) & 1 : 0) | a >> (8 * w - 1) << 11;
}
UOP_FUNCTION uint64_t uop_sar_carry(int64_t a, uint64_t n) {
  return n ? (uint64_t)(a >> (n - 1)) & 1 : 0;
}

// Lanes.
UOP_FUNCTION uint64_t uop_lane_repeat(uint64_t x, uint64_t w) {
  return (x & uop_mask(w)) * (~0ULL / uop_mask(w));
}
// The top bit of each element is added apart, so that no carry leaves it.
UOP_FUNCTION uint64_t uop_lanes_add(uint64_t a, uint64_t b, uint64_t w) {
  uint64_t tops = uop_lane_repeat(1ULL << (8 * w - 1), w);
  return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}
UOP_FUNCTION uint64_t uop_lanes_sub(uint64_t a, uint64_t b, uint64_t w) {
  uint64_t tops = uop_lane_repeat(1ULL << (8 * w - 1), w);
  return ((a | tops) - (b & ~tops)) ^ ((a ^ ~b) & tops);
}
UOP_FUNCTION int64_t uop_clamp(int64_t x, uint64_t w) {
  int64_t most = (int64_t)(uop_mask(w) >> 1);
  return x > most ? most : x < -most - 1 ? -most - 1 : x;
}
UOP_FUNCTION uint64_t uop_lane_mul_add(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 64; k += 32)
    result |= (uint64_t)(uint32_t)(uop_signed(a >> k, 2) * uop_signed(b >> k, 2) +
                                   uop_signed(a >> (k + 16), 2) * uop_signed(b >> (k + 16), 2))
              << k;
  return result;
}
UOP_FUNCTION uint64_t uop_lane_mul_add8(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 64; k += 16) {
    int64_t sum = (int64_t)(a >> k & 0xff) * uop_signed(b >> k, 1) +
                  (int64_t)(a >> (k + 8) & 0xff) * uop_signed(b >> (k + 8), 1);
    result |= ((uint64_t)uop_clamp(sum, 2) & 0xffff) << k;
  }
  return result;
}
UOP_FUNCTION uint64_t uop_lane_sad(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  for (unsigned k = 0; k < 64; k += 8) {
    uint64_t x = a >> k & 0xff, y = b >> k & 0xff;
    sum += x > y ? x - y : y - x;
  }
  return sum;
}
UOP_FUNCTION uint64_t uop_lane_pack(uint64_t a, uint64_t b, uint64_t w, int to_signed) {
  uint64_t result = 0;
  unsigned to = 0;
  for (unsigned from = 0; from < 128; from += 16 * w, to += 8 * w) {
    int64_t x = uop_signed((from < 64 ? a : b) >> (from & 63), 2 * w);
    int64_t most = (int64_t)uop_mask(w);
    x = to_signed ? uop_clamp(x, w) : x < 0 ? 0 : x > most ? most : x;
    result |= ((uint64_t)x & uop_mask(w)) << to;
  }
  return result;
}
UOP_FUNCTION uint64_t uop_lane_truncate(uint64_t a, uint64_t b, uint64_t w) {
  uint64_t result = 0;
  unsigned to = 0;
  for (unsigned from = 0; from < 128; from += 16 * w, to += 8 * w)
    result |= ((from < 64 ? a : b) >> (from & 63) & uop_mask(w)) << to;
  return result;
}
UOP_FUNCTION uint64_t uop_lane_interleave(uint64_t a, uint64_t b, uint64_t w) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 32; k += 8 * w)
    result |= (a >> k & uop_mask(w)) << 2 * k | (b >> k & uop_mask(w)) << (2 * k + 8 * w);
  return result;
}
UOP_FUNCTION uint64_t uop_lane_shuffle8(uint64_t low, uint64_t high, uint64_t which) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 64; k += 8) {
    uint64_t index = which >> k & 0xff;
    uint64_t byte = (index & 8 ? high : low) >> 8 * (index & 7) & 0xff;
    result |= (index & 0x80 ? 0 : byte) << k;
  }
  return result;
}
UOP_FUNCTION uint64_t uop_lane_shuffle16(uint64_t a, int order) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 4; k++)
    result |= (a >> 16 * (order >> 2 * k & 3) & 0xffff) << 16 * k;
  return result;
}
UOP_FUNCTION uint64_t uop_lane_shuffle32(uint64_t a, uint64_t b, int order) {
  uint64_t low = order & 1 ? a >> 32 : a & 0xffffffff;
  return low | (order & 2 ? b >> 32 : b & 0xffffffff) << 32;
}
// `from` bits from bit `begin` on, element by element of w bytes.
UOP_FUNCTION uint64_t uop_lane_extend(uint64_t a, uint64_t w, unsigned begin, unsigned from,
                                      int is_signed) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 64 && begin < 8; k += 8 * w, begin += from) {
    uint64_t x = a >> 8 * begin;
    x = is_signed ? (uint64_t)uop_signed(x, from) : x & uop_mask(from);
    result |= (x & uop_mask(w)) << k;
  }
  return result;
}
UOP_FUNCTION uint64_t uop_lane_signs(uint64_t a, uint64_t w) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 8 / w; k++)
    result |= (a >> (8 * w * (k + 1) - 1) & 1) << k;
  return result;
}
UOP_FUNCTION uint64_t uop_lane_mask(uint64_t bits, uint64_t w) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 8 / w; k++)
    result |= bits >> k & 1 ? uop_mask(w) << 8 * w * k : 0;
  return result;
}
UOP_FUNCTION uint64_t uop_lane_ternary(uint64_t a, uint64_t b, uint64_t c, int table) {
  uint64_t result = 0;
  for (int k = 0; k < 8; k++)
    if (table >> k & 1)
      result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  return result;
}
UOP_FUNCTION uint64_t uop_carryless(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  for (int bit = 0; bit < 64; bit++)
    result ^= b >> bit & 1 ? a << bit : 0;
  return result;
}
UOP_FUNCTION uint64_t uop_carryless_high(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  for (int bit = 1; bit < 64; bit++)
    result ^= b >> bit & 1 ? a >> (64 - bit) : 0;
  return result;
}

#ifndef __bpf__
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
UOP_FUNCTION int uop_is_nan(uint64_t bits, uint64_t w) {
  return w == 8 ? (bits & ~(1ULL << 63)) > 0x7ff0000000000000 : (bits & 0x7fffffff) > 0x7f800000;
}
UOP_FUNCTION uint64_t uop_quiet(uint64_t bits, uint64_t w) {
  return bits | (w == 8 ? 1ULL << 51 : 1ULL << 22);
}
// What an invalid operation yields, whatever the compiler of this makes of it.
UOP_FUNCTION uint64_t uop_nan_of(uint64_t bits, uint64_t w) {
  return uop_is_nan(bits, w) ? (w == 8 ? 0xfff8000000000000 : 0xffc00000) : bits;
}
UOP_FUNCTION double uop_whole(double x, int mode) {
  switch (mode & 3) {
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
UOP_FUNCTION uint64_t uop_float_negate1(uint64_t a, uint64_t w) {
  return uop_is_nan(a, w) ? a : a ^ 1ULL << (8 * w - 1);
}
UOP_FUNCTION uint64_t uop_float_round1(uint64_t a, uint64_t w, int mode) {
  if (uop_is_nan(a, w))
    return uop_quiet(a, w);
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
UOP_FLOATS(negate, (uint64_t a, uint64_t w), (a, w), (a >> 32, w))
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
  return w == 8 ? uop_double_bits((double)a) : uop_float_bits((float)a);
}
// What does not fit is the integer whose top bit alone is set.
UOP_FUNCTION uint64_t uop_float_to_int(uint64_t a, int bytes, uint64_t w, int cut) {
  double x = bytes == 8 ? uop_double(a) : uop_float(a), most = w == 8 ? 0x1p63 : 0x1p31;
  x = uop_whole(x, cut ? 3 : 0);
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
#define UOP_FLOAT_RAW(x_bits, y_bits, width, otherwise) (otherwise)
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
#endif

#define Z(x) ((uint64_t)(x) & uop_mask(w))
#define S(x) uop_signed((uint64_t)(x), w)
#define UOP_EACH(type, element, y_of, e)                                                           \
  __extension__({                                                                                  \
    uint64_t r_ = 0;                                                                               \
    for (unsigned k_ = 0; k_ < 64; k_ += 8 * w) {                                                  \
      type x = element(a >> k_), y = y_of;                                                         \
      (void)y;                                                                                     \
      r_ |= Z(e) << k_;                                                                            \
    }                                                                                              \
    r_;                                                                                            \
  })
#define EACH(e) UOP_EACH(uint64_t, Z, Z(b >> k_), e)
#define EACH_SIGNED(e) UOP_EACH(int64_t, S, S(b >> k_), e)
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
#ifdef __bpf__
#define ASSAY_UOP_FLOAT(name, operands, expression, meaning)
#endif
#include "abi/uops.def"
  default: return 0;
  }
}

#undef Z
#undef S
#undef EACH
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
