// What the expressions of uops.def call: integers, flags, lanes. Pure, C11 and C++, includable from BPF.
//
// Arithmetic is that of the manual, not of C: shifts by the width of a type, divisions that overflow
// and conversions of what does not fit are spelled out.
#pragma once

#include <stdint.h>

#define UOP_FUNCTION static inline __attribute__((always_inline, unused))

// Goes over the elements of w bytes of a lane: k is the number of each one's lowest bit. The count
// says to BPF's verifier that it ends.
#define UOP_EACH_ELEMENT(k, w)                                                                     \
  for (unsigned k = 0, k##_count = 0; k < 64 && k##_count < 8; k += 8 * (unsigned)(w), k##_count++)

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
  for (int bit = 0; bit < 64 && bit < 8 * bytes; bit++, data >>= 1)
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
  for (unsigned n = 0, from = 0; n < 8 && from < 128; n++, from += 16 * w, to += 8 * w) {
    int64_t x = uop_signed((from < 64 ? a : b) >> (from & 63), 2 * w);
    int64_t most = (int64_t)uop_mask(w);
    x = to_signed ? uop_clamp(x, w) : x < 0 ? 0 : x > most ? most : x;
    result |= ((uint64_t)x & uop_mask(w)) << to;
  }
  return result;
}
UOP_FUNCTION uint64_t uop_lane_interleave(uint64_t a, uint64_t b, uint64_t w) {
  uint64_t result = 0;
  for (unsigned n = 0, k = 0; n < 4 && k < 32; n++, k += 8 * w)
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
  for (unsigned n = 0, k = 0; n < 8 && k < 64 && begin < 8; n++, k += 8 * w, begin += from) {
    uint64_t x = a >> 8 * begin;
    x = is_signed ? (uint64_t)uop_signed(x, from) : x & uop_mask(from);
    result |= (x & uop_mask(w)) << k;
  }
  return result;
}
UOP_FUNCTION uint64_t uop_lane_signs(uint64_t a, uint64_t w) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 8 && k < 8 / w; k++)
    result |= (a >> (8 * w * (k + 1) - 1) & 1) << k;
  return result;
}
UOP_FUNCTION uint64_t uop_lane_mask(uint64_t bits, uint64_t w) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 8 && k < 8 / w; k++)
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

UOP_FUNCTION uint64_t uop_lane_pick(uint64_t a, uint64_t b, uint64_t c, uint64_t w, unsigned bits,
                                    int lane) {
  UOP_EACH_ELEMENT(k, w) {
    uint64_t number = c >> k & ((1ULL << bits) - 1), in_lane = 8 / w;
    if (number / in_lane == (uint64_t)lane)
      a = (a & ~(uop_mask(w) << k)) | (b >> 8 * w * (number % in_lane) & uop_mask(w)) << k;
  }
  return a;
}
UOP_FUNCTION uint64_t uop_lane_narrow(uint64_t a, uint64_t w, unsigned from, int how) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 8 && k < 8 / from; k++) {
    uint64_t x = a >> 8 * from * k & uop_mask(from);
    int64_t most = (int64_t)uop_mask(w), is = uop_signed(x, from);
    if (how == 1)
      x = (uint64_t)uop_clamp(is, w);
    else if (how == 2)
      x = is < 0 ? 0 : is > most ? uop_mask(w) : x;
    else if (how == 3)
      x = x > uop_mask(w) ? uop_mask(w) : x;
    result |= (x & uop_mask(w)) << 8 * w * k;
  }
  return result;
}
// The sign of NaNs stays, as a fused product with a negated operand wants it.
UOP_FUNCTION int uop_is_nan(uint64_t bits, uint64_t w) {
  return w == 8 ? (bits & ~(1ULL << 63)) > 0x7ff0000000000000 : (bits & 0x7fffffff) > 0x7f800000;
}
UOP_FUNCTION uint64_t uop_float_negate(uint64_t a, uint64_t w) {
  uint64_t result = 0;
  UOP_EACH_ELEMENT(k, w) {
    uint64_t x = a >> k & uop_mask(w);
    result |= (uop_is_nan(x, w) ? x : x ^ 1ULL << (8 * w - 1)) << k;
  }
  return result;
}

// AES (FIPS 197) without tables, which BPF would have to be given: bytes are elements of a field, a byte is
// substituted by its inverse, turned and added.
UOP_FUNCTION uint8_t uop_aes_times(uint8_t a, uint8_t b) {
  unsigned result = 0, x = a;
  for (unsigned bit = 0; bit < 8; bit++) {
    result ^= b >> bit & 1 ? x : 0;
    x = x << 1 ^ (x & 0x80 ? 0x11b : 0);
  }
  return (uint8_t)result;
}
UOP_FUNCTION uint8_t uop_aes_inverse(uint8_t a) { // a to the power of 254
  uint8_t result = 1, power = a;
  for (unsigned bit = 1; bit < 8; bit++) {
    power = uop_aes_times(power, power);
    result = uop_aes_times(result, power);
  }
  return result;
}
UOP_FUNCTION uint8_t uop_aes_turn(uint8_t a, unsigned by) {
  return (uint8_t)(a << by | a >> (8 - by));
}
UOP_FUNCTION uint8_t uop_aes_byte(uint8_t a) {
  uint8_t b = uop_aes_inverse(a);
  return (uint8_t)(b ^ uop_aes_turn(b, 1) ^ uop_aes_turn(b, 2) ^ uop_aes_turn(b, 3) ^
                   uop_aes_turn(b, 4) ^ 0x63);
}
UOP_FUNCTION uint8_t uop_aes_byte_back(uint8_t a) {
  return uop_aes_inverse(
      (uint8_t)(uop_aes_turn(a, 1) ^ uop_aes_turn(a, 3) ^ uop_aes_turn(a, 6) ^ 5));
}
// Each of two columns of four bytes times the polynomial whose coefficients are those of `by`.
UOP_FUNCTION uint64_t uop_aes_mix(uint64_t a, uint32_t by) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 8; k++) {
    uint8_t sum = 0;
    for (unsigned j = 0; j < 4; j++)
      sum ^= uop_aes_times((uint8_t)(a >> 8 * ((k & 4) + j)), (uint8_t)(by >> 8 * ((k - j) & 3)));
    result |= (uint64_t)sum << 8 * k;
  }
  return result;
}
UOP_FUNCTION uint64_t uop_aes_uncolumns(uint64_t a) {
  return uop_aes_mix(a, 0x0b0d090e);
}
UOP_FUNCTION uint64_t uop_aes_rows(uint64_t low, uint64_t high, int half, unsigned direction) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 8; k++) {
    unsigned column = (unsigned)half * 2 + k / 4, row = k & 3;
    unsigned from = row + 4 * ((column + direction * row) & 3);
    result |= ((from & 8 ? high : low) >> 8 * (from & 7) & 0xff) << 8 * k;
  }
  return result;
}
UOP_FUNCTION uint64_t uop_aes_round(uint64_t low, uint64_t high, uint64_t last, int half) {
  uint64_t from = uop_aes_rows(low, high, half, 1), result = 0;
  for (unsigned k = 0; k < 64; k += 8)
    result |= (uint64_t)uop_aes_byte((uint8_t)(from >> k)) << k;
  return last ? result : uop_aes_mix(result, 0x03010102);
}
UOP_FUNCTION uint64_t uop_aes_unround(uint64_t low, uint64_t high, uint64_t last, int half) {
  uint64_t from = uop_aes_rows(low, high, half, 3), result = 0;
  for (unsigned k = 0; k < 64; k += 8)
    result |= (uint64_t)uop_aes_byte_back((uint8_t)(from >> k)) << k;
  return last ? result : uop_aes_uncolumns(result);
}
UOP_FUNCTION uint64_t uop_aes_words(uint64_t a, uint32_t round) {
  uint32_t word = 0;
  for (unsigned k = 0; k < 32; k += 8)
    word |= (uint32_t)uop_aes_byte((uint8_t)(a >> (32 + k))) << k;
  return word | (uint64_t)((word >> 8 | word << 24) ^ round) << 32;
}
// Exact, whatever the rounding: 64 bits of significand hold any integer of 64 bits.
UOP_FUNCTION uint64_t uop_x87_from_int(int64_t a, int high) {
  uint64_t size = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
  if (size == 0)
    return 0;
  uint64_t zeros = uop_leading_zeros(size);
  return high ? (a < 0 ? 0x8000 : 0) | (0x3fff + 63 - zeros) : size << zeros;
}
