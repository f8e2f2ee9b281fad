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

__attribute__((always_inline)) inline void touch(const void *start, uint64_t bytes) {
  if (are_marked(start, bytes))
    return;
  mark_lines(start, bytes);
  say_where_once();
}

} // namespace

extern "C" {

void __assay_workingset_range(const void *start, uint64_t bytes) {
  touch(start, bytes);
}

void __assay_workingset_string(const char *start, uint64_t limit) {
  touch(start, assay::string_bytes(start, limit));
}

void __assay_workingset_compare(const void *a, const void *b, uint64_t limit, uint32_t how) {
  uint64_t bytes = assay::compared_bytes(a, b, limit, how);
  touch(a, bytes);
  touch(b, bytes);
}

void __assay_workingset_masked(const void *start, uint64_t element_bytes, uint64_t mask) {
  for (; mask; mask &= mask - 1)
    touch((const char *)start + element_bytes * (uint64_t)__builtin_ctzll(mask), element_bytes);
}

__attribute__((preserve_most)) void __assay_workingset_mark(uint64_t line) {
  mark_line(line);
  say_where_once();
}

__attribute__((preserve_most)) void __assay_workingset_tick() {
  pass_accesses();
}
}
