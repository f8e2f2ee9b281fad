// What instrumented code calls, beside the marks that it makes itself.
//
// Most lines have been touched already. So each hook first asks just that, inline, and what marks a
// line is a function of its own, so that the usual way saves few registers. The frame is asked for
// in the hook itself: there begins the stack that a thread says once in each snapshot.
//
// How far a comparison reads depends on what it compares. If sixteen bytes of both can be read and
// the end is among them, it is found at once, and only the lines up to it are asked for; all else
// takes the slow way.

#include "abi/shadow.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/string_bytes.h"
#include "runtime/core/system/vector_parts.h"
#include "runtime/workingset/lines.h"
#include "runtime/workingset/workingset.h"

using namespace assay::workingset;

namespace {

void say_where_once(const void *frame) {
  if (is_silent())
    say_where(frame);
}

__attribute__((noinline)) void mark(const void *start, uint64_t bytes, const void *frame) {
  touch_lines(start, bytes);
  say_where_once(frame);
}

// Inlined: the frame is the hook's.
__attribute__((always_inline)) inline void touch(const void *start, uint64_t bytes) {
  if (!are_touched(start, bytes))
    mark(start, bytes, __builtin_frame_address(0));
}

__attribute__((preserve_most, noinline)) void touch_slowly(uint64_t line) {
  touch_line(line);
  say_where_once(__builtin_frame_address(0));
}

bool is_touched_short(const void *start, uint64_t bytes) { // that were read; sixteen at most
  return are_both_touched((uint64_t)start >> 6, ((uint64_t)start + bytes - 1) >> 6);
}

__attribute__((noinline)) void compare_slowly(const void *a, const void *b, uint64_t limit,
                                              uint32_t how) {
  uint64_t bytes = assay::compared_bytes(a, b, limit, how);
  touch(a, bytes);
  touch(b, bytes);
}

} // namespace

extern "C" {

void __assay_workingset_range(const void *start, uint64_t bytes) {
  touch(start, bytes);
}

void __assay_workingset_vector(const void *vector, uint64_t count, uint64_t bytes) {
  const void *frame = __builtin_frame_address(0);
  assay::for_each_part(vector, count, bytes, [frame](const void *start, uint64_t size) {
    if (!are_touched(start, size))
      mark(start, size, frame);
  });
}

void __assay_workingset_string(const char *start, uint64_t limit) {
  touch(start, assay::string_bytes(start, limit));
}

void __assay_workingset_compare(const void *a, const void *b, uint64_t limit, uint32_t how) {
  if (is_plain() && limit >= 16 && assay::has_sixteen(a) && assay::has_sixteen(b))
    if (uint32_t ends = assay::ends_in_sixteen(a, b, how)) {
      uint64_t bytes = (uint64_t)__builtin_ctz(ends) + 1;
      if (is_touched_short(a, bytes) && is_touched_short(b, bytes))
        return;
    }
  [[clang::musttail]] return compare_slowly(a, b, limit, how);
}

void __assay_workingset_masked(const void *start, uint64_t element_bytes, uint64_t mask) {
  for (; mask; mask &= mask - 1)
    touch((const char *)start + element_bytes * (uint64_t)__builtin_ctzll(mask), element_bytes);
}

__attribute__((preserve_most)) void __assay_workingset_touch(uint64_t line) {
  if (__builtin_expect(is_bits() || is_silent(), 0)) [[clang::musttail]]
    return touch_slowly(line);
  touch_byte((volatile uint8_t *)__assay_lines_base + line); // few registers: few are saved
}

__attribute__((preserve_most)) void __assay_workingset_spent() {
  pass_accesses();
}
}
