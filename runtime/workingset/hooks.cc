// What instrumented code calls, beside the marks that it makes itself.

#include "runtime/core/runtime.h"
#include "runtime/core/string_bytes.h"
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
  mark_lines(start, assay::string_bytes(start, limit));
}

void __assay_workingset_compare(const void *a, const void *b, uint64_t limit, uint32_t how) {
  uint64_t bytes = assay::compared_bytes(a, b, limit, how);
  mark_lines(a, bytes);
  mark_lines(b, bytes);
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
