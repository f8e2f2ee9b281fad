// What instrumented code calls, beside the marks that it makes itself.

#include <string.h>

#include "abi/sites.h"
#include "runtime/core/runtime.h"
#include "runtime/workingset/lines.h"
#include "runtime/workingset/workingset.h"

uint32_t __assay_snapshot = 1;
thread_local constinit uint32_t __assay_stack_snapshot = 0;

using namespace assay::workingset;

extern "C" {

void __assay_workingset_range(const void *start, uint64_t bytes) {
  mark_lines(start, bytes);
}

void __assay_workingset_string(const char *start, uint64_t limit) {
  uint64_t length = strnlen(start, limit);
  mark_lines(start, length < limit ? length + 1 : length);
}

void __assay_workingset_compare(const void *a, const void *b, uint64_t limit, uint32_t how) {
  const char *p = (const char *)a, *q = (const char *)b;
  uint64_t n = 0;
  while (n < limit && p[n] == q[n] && !((how & ASSAY_HOW_STRING) && p[n] == 0))
    n++;
  if (n < limit) // the bytes that decided were read too
    n++;
  mark_lines(a, n);
  mark_lines(b, n);
}

void __assay_workingset_masked(const void *start, uint64_t element_bytes, uint64_t mask) {
  for (; mask; mask &= mask - 1)
    mark_lines((const char *)start + element_bytes * (uint64_t)__builtin_ctzll(mask),
               element_bytes);
}

__attribute__((preserve_most)) void __assay_workingset_stack() {
  say_where(__builtin_frame_address(0));
}

__attribute__((preserve_most)) void __assay_workingset_tick() {
  pass_accesses();
}
}
