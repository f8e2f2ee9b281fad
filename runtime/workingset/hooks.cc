// What instrumented code calls, beside the marks that it makes itself.

#include "abi/shadow.h"
#include "runtime/core/runtime.h"
#include "runtime/core/string_bytes.h"
#include "runtime/workingset/lines.h"
#include "runtime/workingset/workingset.h"

using namespace assay::workingset;

namespace {

// Inlined: the frame is the hook's.
__attribute__((always_inline)) inline void say_where_once() {
  if (__builtin_expect(is_silent(), 0))
    say_where(__builtin_frame_address(0));
}

} // namespace

extern "C" {

void __assay_workingset_range(const void *start, uint64_t bytes) {
  mark_lines(start, bytes);
  say_where_once();
}

void __assay_workingset_string(const char *start, uint64_t limit) {
  mark_lines(start, assay::string_bytes(start, limit));
  say_where_once();
}

void __assay_workingset_compare(const void *a, const void *b, uint64_t limit, uint32_t how) {
  uint64_t bytes = assay::compared_bytes(a, b, limit, how);
  mark_lines(a, bytes);
  mark_lines(b, bytes);
  say_where_once();
}

void __assay_workingset_masked(const void *start, uint64_t element_bytes, uint64_t mask) {
  for (; mask; mask &= mask - 1)
    mark_lines((const char *)start + element_bytes * (uint64_t)__builtin_ctzll(mask),
               element_bytes);
  say_where_once();
}

__attribute__((preserve_most)) void __assay_workingset_mark(void *shadow) {
  *(volatile uint8_t *)shadow |= ASSAY_LINE_TOUCHED;
  say_where_once();
}

__attribute__((preserve_most)) void __assay_workingset_span(const void *start, uint64_t bytes) {
  mark_lines(start, bytes);
  say_where_once();
}

__attribute__((preserve_most)) void __assay_workingset_tick() {
  pass_accesses();
}
}
