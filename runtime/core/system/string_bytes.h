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

// Sixteen bytes may be read here that belong to nobody, as they lie in one page.
inline bool has_sixteen(const void *at) {
  return ((uint64_t)at & 4095) <= 4096 - 16;
}

// Where in their first sixteen bytes a comparison ends: a bit for each.
inline uint32_t ends_in_sixteen(const void *p, const void *q, uint32_t how) {
  __m128i of_p = _mm_loadu_si128((const __m128i *)p);
  __m128i same = _mm_cmpeq_epi8(of_p, _mm_loadu_si128((const __m128i *)q));
  if (how & ASSAY_ACCESS_STRING)
    same = _mm_andnot_si128(_mm_cmpeq_epi8(of_p, _mm_setzero_si128()), same);
  return (uint32_t)_mm_movemask_epi8(same) ^ 0xffff;
}

// Of two places up to their first difference, which was read too, or limit; with ASSAY_ACCESS_STRING a zero
// byte ends it as well.
inline uint64_t compared_bytes(const void *a, const void *b, uint64_t limit, uint32_t how) {
  const char *p = (const char *)a, *q = (const char *)b;
  uint64_t n = 0;
  while (n < limit) {
    if (limit - n >= 16 && has_sixteen(p + n) && has_sixteen(q + n)) {
      if (uint32_t ends = ends_in_sixteen(p + n, q + n, how))
        return n + (uint64_t)__builtin_ctz(ends) + 1;
      n += 16;
      continue;
    }
    n++;
    if (p[n - 1] != q[n - 1] || (how & ASSAY_ACCESS_STRING && p[n - 1] == 0))
      break;
  }
  return n;
}

} // namespace assay
