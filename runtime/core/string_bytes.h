// How many bytes the string functions of libc touch, told afterwards.
#pragma once

#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

#include "abi/sites.h"

namespace assay {

// Of the string at start, its zero byte included, but at most limit.
inline uint64_t string_bytes(const char *start, uint64_t limit) {
  uint64_t length = strnlen(start, limit);
  return length < limit ? length + 1 : length;
}

// Of two places up to their first difference, which was read too, or limit; with ASSAY_HOW_STRING a zero
// byte ends it as well.
inline uint64_t compared_bytes(const void *a, const void *b, uint64_t limit, uint32_t how) {
  const char *p = (const char *)a, *q = (const char *)b;
  const bool stops = how & ASSAY_HOW_STRING;
  const auto in_one_page = [](const char *at) { return ((uint64_t)at & 4095) <= 4096 - 16; };
  uint64_t n = 0;
  while (n < limit) {
    if (limit - n >= 16 && in_one_page(p + n) && in_one_page(q + n)) {
      __m128i of_p = _mm_loadu_si128((const __m128i *)(p + n));
      __m128i same = _mm_cmpeq_epi8(of_p, _mm_loadu_si128((const __m128i *)(q + n)));
      if (stops)
        same = _mm_andnot_si128(_mm_cmpeq_epi8(of_p, _mm_setzero_si128()), same);
      uint32_t ends = (uint32_t)_mm_movemask_epi8(same) ^ 0xffff;
      if (ends)
        return n + (uint64_t)__builtin_ctz(ends) + 1;
      n += 16;
      continue;
    }
    n++;
    if (p[n - 1] != q[n - 1] || (stops && p[n - 1] == 0))
      break;
  }
  return n;
}

} // namespace assay
