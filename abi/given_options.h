// The words of ASSAY_OPTIONS and of `assay run --options`: name=value, separated by colons. A value that holds a colon
// stands in quotes, single or double. The runtime and the command read them by this one parser.
#pragma once

#include <stdint.h>

typedef struct AssayGivenOption {
  const char *name, *name_end;
  const char *value, *value_end; // without its quotes
  const char *behind;            // at the next colon, or the end
  int is_quoted_whole; // or not quoted: nothing stands beside the quotes, and both are there
} AssayGivenOption;

static inline const char *assay_find_colon(const char *from) {
  while (*from && *from != ':')
    from++;
  return from;
}

// The option at `from`, in a text that ends with 0.
static inline AssayGivenOption assay_next_option(const char *from) {
  AssayGivenOption next = {from, from, from, from, assay_find_colon(from), 1};
  while (next.name_end < next.behind && *next.name_end != '=')
    next.name_end++;
  next.value = next.name_end < next.behind ? next.name_end + 1 : next.behind;
  next.value_end = next.behind;
  if (*next.value != '\'' && *next.value != '"')
    return next;
  const char *close = next.value + 1;
  while (*close && *close != *next.value)
    close++;
  next.value++;
  next.value_end = close;
  next.behind = *close ? assay_find_colon(close) : close;
  next.is_quoted_whole = *close && next.behind == close + 1;
  return next;
}

// Reads what is a number as a whole, with k, m or g for powers of 1024 behind it. 0: it is none, or does not fit.
static inline int assay_read_number(const char *value, const char *end, uint64_t *number) {
  uint64_t n = 0;
  const char *p = value;
  for (; p < end && *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
        __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
      return 0;
  if (p == value)
    return 0;
  if (p + 1 == end) {
    const int shift = *p == 'k' ? 10 : *p == 'm' ? 20 : *p == 'g' ? 30 : 0;
    if (shift == 0 || n > (UINT64_MAX >> shift))
      return 0;
    n <<= shift;
    p++;
  }
  *number = n;
  return p == end;
}
