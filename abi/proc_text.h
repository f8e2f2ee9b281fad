// What files of /proc say, as text that ends with a zero.
#pragma once

#include <stdint.h>

// The number behind a name in what /proc/PID/status says; UINT32_MAX: the name is not there.
static inline uint32_t assay_number_in(const char *status, const char *name) {
  for (const char *line = status; *line; line++) {
    const char *at = line;
    const char *wanted = name;
    while (*wanted && *at == *wanted) {
      at++;
      wanted++;
    }
    if (!*wanted && (line == status || line[-1] == '\n')) {
      uint32_t number = 0;
      for (; *at == '\t' || (*at >= '0' && *at <= '9'); at++)
        number = *at == '\t' ? number : number * 10 + (uint32_t)(*at - '0');
      return number;
    }
  }
  return UINT32_MAX;
}
// How many filters of system calls (seccomp) a process runs under; of older kernels whether there
// is one, by another number than 0.
static inline uint32_t assay_filters_in(const char *status) {
  const uint32_t filters = assay_number_in(status, "Seccomp_filters:");
  return filters != UINT32_MAX ? filters : assay_number_in(status, "Seccomp:");
}

// The number of the namespace that a link like "pid:[NUMBER]" names; 0: there is none.
static inline uint32_t assay_namespace_in(const char *link) {
  uint32_t number = 0;
  for (; *link; link++)
    if (*link >= '0' && *link <= '9')
      number = number * 10 + (uint32_t)(*link - '0');
  return number;
}
