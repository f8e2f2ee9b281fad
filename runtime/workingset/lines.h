// The shadow of touched lines, in each of its forms (abi/shadow.h, abi/sites.h): what marks outside
// instrumented code, and what a snapshot reads.
//
// In the byte forms a byte holds the newest snapshot in its highest bit and seven older ones below it.
// Threads go on marking while a snapshot ends: a touch may fall into the neighbouring snapshot, none is
// lost.
//
// Source: working-set.txt, "Approach".
#pragma once

#include <stdint.h>

#include "abi/shadow.h"
#include "abi/sites.h"
#include "runtime/core/runtime.h"

namespace assay::workingset {

extern constinit UnitMode units; // a sum of enum AssayLines

constexpr uint32_t kMaxPlanes = 8;

// Maps the shadow of the form that units.mode says. False if the kernel refuses: then it is mapped as
// it is touched, and nothing is recorded. Where something else lies at its fixed base, it is mapped
// elsewhere, which only code with a dynamic base finds.
bool map_lines();
bool lines_are_elsewhere();

// In the child of a fork: no line was touched.
void reset_lines_in_child();

// Bytes of program that a line has.
uint64_t line_bytes();

// How many snapshots the shadow itself can hold, the running one left out.
uint32_t held_snapshots();

// Marks the lines that [start, start + bytes) lies in.
void touch_lines(const void *start, uint64_t bytes);

// Marks the line of this number: its address divided by its bytes.
void touch_line(uint64_t number);

inline bool is_bits() {
  return (units.mode & ASSAY_LINES_ENCODING) == ASSAY_LINES_BITS;
}
inline void touch_byte(volatile uint8_t *byte) {
  if (!(*byte & ASSAY_LINE_TOUCHED))
    *byte |= ASSAY_LINE_TOUCHED;
}

// Does none of them need it? At most two lines, in the form of a byte for 64 bytes.
inline bool is_plain() {
  return (units.mode & ASSAY_LINES_ENCODING) == 0;
}
inline bool are_both_touched(uint64_t first, uint64_t last) {
  const volatile uint8_t *lines = (const volatile uint8_t *)__assay_lines_base;
  return lines[first] & lines[last] & ASSAY_LINE_TOUCHED;
}
// May say no of more lines, and of other forms.
inline bool are_touched(const void *start, uint64_t bytes) {
  uint64_t first = (uint64_t)start >> 6, last = ((uint64_t)start + bytes - 1) >> 6;
  return is_plain() && last - first <= 1 && last < ASSAY_HIGH_END >> 6 &&
         are_both_touched(first, last);
}

// 64 lines: group g holds lines 64 g and on. Bit i of a plane is line i.
struct Group {
  uint64_t number;
  uint64_t now;                // touched in the running snapshot
  uint64_t before[kMaxPlanes]; // and in those that ended, the newest first
};

// Calls f for each group that was touched in the running snapshot or in those that are held.
void visit_lines(void (*f)(void *context, const Group &group), void *context);

// Ends the running snapshot: calls f for each group that was touched in it or in those that are held.
// now is still the snapshot that ends; with a form that holds none, it is forgotten afterwards.
void end_lines(void (*f)(void *context, const Group &group), void *context);

template <typename F> void visit_lines(F f) {
  visit_lines([](void *given, const Group &group) { (*(F *)given)(group); }, &f);
}
template <typename F> void end_lines(F f) {
  end_lines([](void *given, const Group &group) { (*(F *)given)(group); }, &f);
}

} // namespace assay::workingset
