// Shadow geometry: where the bookkeeping for a program address lies. All three shadows are fixed at
// once, so that any subset of the tools can live in one process.
//
//   shadow     program -> shadow        base         used by
//   lines      64 B -> 1 B   (>> 6)     0x4e000000   working set
//   counters   64 B -> 8 B   (>> 3)     0x50000000   heap: low half reads, high half writes
//   words       4 B -> 1 B   (>> 2)     0x60000000   objects
//
// A base below 2 GiB fits the 32-bit displacement of an x86-64 address, so that an update is one
// instruction with no base register. What follows from that, for the 47 bits of user addresses:
//
//   program, low     [0, 0x4e000000)                     no-PIE executables and their brk heap
//   lines, low       [0x4e000000, 0x4f380000)
//   counters, low    [0x50000000, 0x59c00000)
//   words, low       [0x60000000, 0x73800000)
//   lines, high      [0x0100'4e000000, 0x0200'4e000000)
//   counters, high   [0x0800'50000000, 0x1000'50000000)
//   words, high      [0x1000'60000000, 0x2000'60000000)
//   bits, high       [0x0020'4e000000, 0x0040'4e000000)  (lines as one bit; low: in the lines' place)
//   half lines       [0x74000000, 0x76700000), [0x0200'74000000, 0x0400'74000000)
//   program, high    [0x4000'00000000, 0x8000'00000000)  PIE, libraries, mmap, stacks
//
// Two more windows hold a program's mappings where the kernel lays them out in another way:
//
//   program, unlimited  [0x1100'00000000, 0x1600'00000000)  the stack is unlimited: `ulimit -s unlimited`
//   program, legacy     [0x2a00'00000000, 0x2d00'00000000)  from the bottom up: `setarch -L`
//   counters of these   [0x0220'50000000, 0x02c0'50000000), [0x0540'50000000, 0x05a0'50000000)
//   lines of these      [0x0044'4e000000, 0x0058'4e000000), [0x00a8'4e000000, 0x00b4'4e000000)
//
// There, counters have no room beside half lines, and the words of either window lie among other shadows.
//
// What lies between (odd mmap hints) has no shadow of its own: the runtime maps the whole span of a
// tool's shadow, so that an access there is counted somewhere harmless instead of faulting, and it
// refuses to account for such memory (loss `odd_address`).
//
// Source: heap-profiler.txt "Shadow Memory" (64 -> 8), working-set.txt (64 -> 1),
// cache-fragmentation.txt (4 -> 1).
#pragma once

#include <assert.h>
#include <stdint.h>

#define ASSAY_LINES_SHIFT 6
#define ASSAY_LINES_BASE 0x4e000000ULL
#define ASSAY_COUNTERS_SHIFT 3
#define ASSAY_COUNTERS_BASE 0x50000000ULL
#define ASSAY_WORDS_SHIFT 2
#define ASSAY_WORDS_BASE 0x60000000ULL

// The other forms of the lines' shadow, one bit for 64 bytes and one byte for 32. The finer one needs
// more room than lies at the base of the others.
#define ASSAY_BITS_SHIFT 9
#define ASSAY_BITS_BASE ASSAY_LINES_BASE
#define ASSAY_HALF_LINES_SHIFT 5
#define ASSAY_HALF_LINES_BASE 0x74000000ULL

// The newest of the eight snapshots in a byte of the lines' shadow.
#define ASSAY_LINE_TOUCHED 0x80

#define ASSAY_LOW_BEGIN 0x0ULL
#define ASSAY_LOW_END 0x4e000000ULL
#define ASSAY_HIGH_BEGIN 0x400000000000ULL
#define ASSAY_HIGH_END 0x800000000000ULL
#define ASSAY_UNLIMITED_BEGIN 0x110000000000ULL
#define ASSAY_UNLIMITED_END 0x160000000000ULL
#define ASSAY_LEGACY_BEGIN 0x2a0000000000ULL
#define ASSAY_LEGACY_END 0x2d0000000000ULL

// Calls X(window) for each part of the address space that programs live in, in ascending order.
#define ASSAY_PROGRAM_WINDOWS(X) X(LOW) X(UNLIMITED) X(LEGACY) X(HIGH)

static inline int assay_in_program_window(uint64_t begin, uint64_t end) {
#define ASSAY_IN_WINDOW_(window) (begin >= ASSAY_##window##_BEGIN && end <= ASSAY_##window##_END) ||
  return ASSAY_IN_WINDOW_(HIGH) ASSAY_PROGRAM_WINDOWS(ASSAY_IN_WINDOW_) 0; // nearly always there
#undef ASSAY_IN_WINDOW_
}

#define ASSAY_PAGE_BYTES 4096ULL // of x86-64

// Bytes of program that share one counter, and bytes of one counter.
#define ASSAY_BLOCK_BYTES 64ULL
#define ASSAY_COUNTER_BYTES 8ULL

#define ASSAY_SHADOW_OF_(address, shift, base) (((uint64_t)(address) >> (shift)) + (base))

// The first byte of the counter of the block that holds address; a uint64_t, reads in the low half
// and writes in the high half.
#define ASSAY_COUNTER_OF(address)                                                                  \
  ((ASSAY_SHADOW_OF_((address), ASSAY_COUNTERS_SHIFT, 0) & ~7ULL) + ASSAY_COUNTERS_BASE)

#define ASSAY_COUNTERS_BEGIN ASSAY_COUNTERS_BASE
#define ASSAY_COUNTERS_END                                                                         \
  ASSAY_SHADOW_OF_(ASSAY_HIGH_END, ASSAY_COUNTERS_SHIFT, ASSAY_COUNTERS_BASE)

#define ASSAY_DISJOINT_(a_begin, a_end, b_begin, b_end)                                            \
  ((a_end) <= (b_begin) || (b_end) <= (a_begin))
#define ASSAY_SHADOW_BEGIN_(range, shadow)                                                         \
  ASSAY_SHADOW_OF_(ASSAY_##range##_BEGIN, ASSAY_##shadow##_SHIFT, ASSAY_##shadow##_BASE)
#define ASSAY_SHADOW_END_(range, shadow)                                                           \
  ASSAY_SHADOW_OF_(ASSAY_##range##_END, ASSAY_##shadow##_SHIFT, ASSAY_##shadow##_BASE)
#define ASSAY_CHECK_PROGRAM_(range, shadow, program)                                               \
  static_assert(ASSAY_DISJOINT_(ASSAY_SHADOW_BEGIN_(range, shadow),                                \
                                ASSAY_SHADOW_END_(range, shadow), ASSAY_##program##_BEGIN,         \
                                ASSAY_##program##_END),                                            \
                "shadow " #shadow " of " #range " overlaps the program's " #program)
#define ASSAY_CHECK_SHADOWS_(range_a, a, range_b, b)                                               \
  static_assert(ASSAY_DISJOINT_(ASSAY_SHADOW_BEGIN_(range_a, a), ASSAY_SHADOW_END_(range_a, a),    \
                                ASSAY_SHADOW_BEGIN_(range_b, b), ASSAY_SHADOW_END_(range_b, b)),   \
                "shadows " #a " of " #range_a " and " #b " of " #range_b " overlap")
#define ASSAY_CHECK_PAIR_(a, b)                                                                    \
  ASSAY_CHECK_SHADOWS_(LOW, a, LOW, b);                                                            \
  ASSAY_CHECK_SHADOWS_(LOW, a, HIGH, b);                                                           \
  ASSAY_CHECK_SHADOWS_(HIGH, a, LOW, b);                                                           \
  ASSAY_CHECK_SHADOWS_(HIGH, a, HIGH, b)
#define ASSAY_CHECK_SHADOW_(a)                                                                     \
  ASSAY_CHECK_PROGRAM_(LOW, a, LOW);                                                               \
  ASSAY_CHECK_PROGRAM_(LOW, a, HIGH);                                                              \
  ASSAY_CHECK_PROGRAM_(HIGH, a, LOW);                                                              \
  ASSAY_CHECK_PROGRAM_(HIGH, a, HIGH);                                                             \
  static_assert(ASSAY_##a##_BASE <= 0x7fffffffULL, "base does not fit a displacement")

ASSAY_CHECK_SHADOW_(LINES);
ASSAY_CHECK_SHADOW_(COUNTERS);
ASSAY_CHECK_SHADOW_(WORDS);
ASSAY_CHECK_SHADOW_(BITS);
ASSAY_CHECK_SHADOW_(HALF_LINES);
ASSAY_CHECK_PAIR_(LINES, COUNTERS);
ASSAY_CHECK_PAIR_(LINES, WORDS);
ASSAY_CHECK_PAIR_(COUNTERS, WORDS);
ASSAY_CHECK_PAIR_(BITS, COUNTERS);
ASSAY_CHECK_PAIR_(BITS, WORDS);
ASSAY_CHECK_PAIR_(HALF_LINES, COUNTERS);
ASSAY_CHECK_PAIR_(HALF_LINES, WORDS);

// The other layouts, for the shadows that cover them. A program has its low and high parts in every layout.
#define ASSAY_CHECK_WINDOW_SHADOW_(range, a)                                                       \
  ASSAY_CHECK_PROGRAM_(range, a, LOW);                                                             \
  ASSAY_CHECK_PROGRAM_(range, a, HIGH);                                                            \
  ASSAY_CHECK_PROGRAM_(range, a, range);                                                           \
  ASSAY_CHECK_PROGRAM_(LOW, a, range);                                                             \
  ASSAY_CHECK_PROGRAM_(HIGH, a, range)
#define ASSAY_CHECK_WINDOW_PAIR_(range, a, b)                                                      \
  ASSAY_CHECK_SHADOWS_(range, a, LOW, b);                                                          \
  ASSAY_CHECK_SHADOWS_(range, a, HIGH, b);                                                         \
  ASSAY_CHECK_SHADOWS_(range, a, range, b);                                                        \
  ASSAY_CHECK_SHADOWS_(LOW, a, range, b);                                                          \
  ASSAY_CHECK_SHADOWS_(HIGH, a, range, b)
ASSAY_CHECK_WINDOW_SHADOW_(UNLIMITED, LINES);
ASSAY_CHECK_WINDOW_SHADOW_(UNLIMITED, COUNTERS);
ASSAY_CHECK_WINDOW_SHADOW_(UNLIMITED, BITS);
ASSAY_CHECK_WINDOW_SHADOW_(UNLIMITED, HALF_LINES);
ASSAY_CHECK_WINDOW_SHADOW_(LEGACY, LINES);
ASSAY_CHECK_WINDOW_SHADOW_(LEGACY, COUNTERS);
ASSAY_CHECK_WINDOW_SHADOW_(LEGACY, BITS);
ASSAY_CHECK_WINDOW_SHADOW_(LEGACY, HALF_LINES);
ASSAY_CHECK_WINDOW_PAIR_(UNLIMITED, LINES, COUNTERS);
ASSAY_CHECK_WINDOW_PAIR_(UNLIMITED, BITS, COUNTERS);
ASSAY_CHECK_WINDOW_PAIR_(LEGACY, LINES, COUNTERS);
ASSAY_CHECK_WINDOW_PAIR_(LEGACY, BITS, COUNTERS);
ASSAY_CHECK_WINDOW_PAIR_(LEGACY, HALF_LINES, COUNTERS);
