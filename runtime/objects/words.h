// The shadow of words, in each of its forms (abi/word_encoding.h): what marks outside instrumented
// code, what objects read when they end, and what a sample does.
//
// A word of the form `byte` counts up to 127 samples. What is beyond lies in a table (hot_words.h),
// so that it never saturates unsaid.
//
// Source: cache-fragmentation.txt, "Shadow memory".
#pragma once

#include <stdint.h>

#include "abi/object_sums.h"
#include "abi/word_encoding.h"
#include "runtime/core/runtime.h"

namespace assay::objects {

extern constinit UnitMode units; // a sum of enum AssayWords

// Maps the shadow of the form that units.mode says. False if there is no room for it, or the kernel
// refuses: then it is mapped as it is touched, and nothing is recorded. Code with a dynamic base
// finds it anywhere.
bool map_words();
AssayLossKind why_no_words(); // where map_words() failed
bool words_are_elsewhere();
void reset_words_in_child(); // of a fork: no word was accessed

// Do words of these addresses have a shadow of their own?
bool have_words(uint64_t begin, uint64_t end);

// Bytes of program that are told apart: 4, or 1.
uint64_t unit_bytes();

// Marks what [start, start + bytes) overlaps, or counts one access to it.
void touch_words(const void *start, uint64_t bytes);

// What an object has used of one line. Units are numbered from the object's first.
struct LineUnits {
  uint64_t address;                   // of the line
  uint64_t first;                     // number of its first unit that is the object's
  uint32_t count;                     // units of the object in this line
  uint64_t used;                      // bit i: unit first + i was accessed
  uint32_t place;                     // of the unit `first` in the line
  uint64_t hotness[ASSAY_LINE_BYTES]; // of the used ones
  uint8_t again[ASSAY_LINE_BYTES];    // of the used ones (AssayWordCell)
};

// Calls f for each line of [start, start + size) with a used unit, in ascending order. Costs what was touched.
void for_each_used_line(const void *start, uint64_t size,
                        void (*f)(void *context, const LineUnits &line), void *context);
template <typename F> void for_each_used_line(const void *start, uint64_t size, F f) {
  for_each_used_line(
      start, size, [](void *given, const LineUnits &line) { (*(F *)given)(line); }, &f);
}

// The shadow of a range as bytes, one for each word: null where it has another form.
const uint8_t *plain_words(uint64_t address);

// From now on none of these was accessed.
void clear_words(const void *start, uint64_t size);

// Gives what is known of one place to another, as far as that reaches; the source is cleared.
void move_words(const void *from, uint64_t from_size, const void *to, uint64_t to_size);

// Ends a sample of [begin, end): what was accessed in it is counted, and marks are cleared.
void sample_words(uint64_t begin, uint64_t end);

} // namespace assay::objects
