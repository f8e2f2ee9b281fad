// How many bytes the string functions of libc touch, told afterwards.
#pragma once

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
  uint64_t n = 0;
  while (n < limit && p[n] == q[n] && !((how & ASSAY_HOW_STRING) && p[n] == 0))
    n++;
  return n < limit ? n + 1 : n;
}

} // namespace assay
