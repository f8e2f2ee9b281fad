// Stripes of counters: threads that count at the same moment count in different places, so that none
// loses the other's addition, without atomic operations. Instrumented code addresses counters through
// the gs segment, whose base is 0 in the first thread; a thread of stripe s runs with gs base
// ASSAY_STRIPE(s), and finds its counters that much higher. A prefix byte is all that costs.
//
// The room between the other shadows and the program holds eight stripes, because programs live in
// three windows only; what lies outside them (odd mmap hints) is accounted for in stripe 0 alone.
//
//   program window                      its counters in stripe s, from ASSAY_STRIPE(s) on
//   low    [0, 0x4e000000)              + 0x50000000
//   PIE    [0x5500'…, 0x5800'…)         + 0x0aa0'50000000   384 GiB
//   mmap   [0x7900'…, 0x8000'…)         + 0x0f20'50000000   896 GiB
//
// At steps of 3 TiB the PIE window of each stripe falls into the gap between the mmap windows of two
// others. The mappings of a program with an unlimited stack (abi/shadow.h) have counters in every stripe, too; those of
// the legacy layout lie where the stripes are, so such a program has stripe 0 alone.
#pragma once

#include "abi/shadow.h"

#define ASSAY_STRIPES 8

#define ASSAY_PIE_BEGIN 0x550000000000ULL
#define ASSAY_PIE_END 0x580000000000ULL
#define ASSAY_MMAP_BEGIN 0x790000000000ULL
#define ASSAY_MMAP_END 0x800000000000ULL

#define ASSAY_STRIPE_STEP_ 0x030000000000ULL
#define ASSAY_STRIPE_BASE_ 0x130020000000ULL
// Step 4 would put the low window where words of mmapped memory have their shadow.
#define ASSAY_STRIPE(s)                                                                            \
  ((s) == 0                                                                                        \
       ? 0ULL                                                                                      \
       : ASSAY_STRIPE_BASE_ + ((s) < 4 ? (uint64_t)(s) : (uint64_t)(s) + 1) * ASSAY_STRIPE_STEP_)

// Counters of a program window in a stripe.
#define ASSAY_STRIPE_BEGIN_(window, s)                                                             \
  (ASSAY_STRIPE(s) +                                                                               \
   ASSAY_SHADOW_OF_(ASSAY_##window##_BEGIN, ASSAY_COUNTERS_SHIFT, ASSAY_COUNTERS_BASE))
#define ASSAY_STRIPE_END_(window, s)                                                               \
  (ASSAY_STRIPE(s) +                                                                               \
   ASSAY_SHADOW_OF_(ASSAY_##window##_END, ASSAY_COUNTERS_SHIFT, ASSAY_COUNTERS_BASE))

#define ASSAY_CHECK_STRIPES_(window_a, a, window_b, b)                                             \
  static_assert((a) == (b) || ASSAY_DISJOINT_(ASSAY_STRIPE_BEGIN_(window_a, a),                    \
                                              ASSAY_STRIPE_END_(window_a, a),                      \
                                              ASSAY_STRIPE_BEGIN_(window_b, b),                    \
                                              ASSAY_STRIPE_END_(window_b, b)),                     \
                "stripes " #a " and " #b " overlap: " #window_a ", " #window_b)
#define ASSAY_CHECK_STRIPE_PAIR_(a, b)                                                             \
  ASSAY_CHECK_STRIPES_(LOW, a, LOW, b);                                                            \
  ASSAY_CHECK_STRIPES_(LOW, a, PIE, b);                                                            \
  ASSAY_CHECK_STRIPES_(LOW, a, MMAP, b);                                                           \
  ASSAY_CHECK_STRIPES_(PIE, a, PIE, b);                                                            \
  ASSAY_CHECK_STRIPES_(PIE, a, MMAP, b);                                                           \
  ASSAY_CHECK_STRIPES_(MMAP, a, MMAP, b);                                                          \
  ASSAY_CHECK_STRIPES_(UNLIMITED, a, LOW, b);                                                      \
  ASSAY_CHECK_STRIPES_(UNLIMITED, a, PIE, b);                                                      \
  ASSAY_CHECK_STRIPES_(UNLIMITED, a, MMAP, b);                                                     \
  ASSAY_CHECK_STRIPES_(UNLIMITED, a, UNLIMITED, b)
#define ASSAY_CHECK_WINDOW_(s, window)                                                             \
  static_assert(ASSAY_STRIPE_END_(window, s) <= ASSAY_HIGH_BEGIN, "a stripe reaches the program"); \
  static_assert(                                                                                   \
      ASSAY_DISJOINT_(ASSAY_STRIPE_BEGIN_(window, s), ASSAY_STRIPE_END_(window, s),                \
                      ASSAY_SHADOW_OF_(ASSAY_PIE_BEGIN, ASSAY_WORDS_SHIFT, ASSAY_WORDS_BASE),      \
                      ASSAY_SHADOW_OF_(ASSAY_PIE_END, ASSAY_WORDS_SHIFT, ASSAY_WORDS_BASE)) &&     \
          ASSAY_DISJOINT_(ASSAY_STRIPE_BEGIN_(window, s), ASSAY_STRIPE_END_(window, s),            \
                          ASSAY_SHADOW_OF_(ASSAY_MMAP_BEGIN, ASSAY_WORDS_SHIFT, ASSAY_WORDS_BASE), \
                          ASSAY_SHADOW_OF_(ASSAY_MMAP_END, ASSAY_WORDS_SHIFT, ASSAY_WORDS_BASE)),  \
      "a stripe overlaps the words")
#define ASSAY_CHECK_UNLIMITED_(s)                                                                  \
  static_assert(ASSAY_DISJOINT_(ASSAY_STRIPE_BEGIN_(UNLIMITED, s),                                 \
                                ASSAY_STRIPE_END_(UNLIMITED, s), ASSAY_UNLIMITED_BEGIN,            \
                                ASSAY_UNLIMITED_END) &&                                            \
                    ASSAY_DISJOINT_(ASSAY_STRIPE_BEGIN_(LOW, s), ASSAY_STRIPE_END_(LOW, s),        \
                                    ASSAY_UNLIMITED_BEGIN, ASSAY_UNLIMITED_END),                   \
                "a stripe reaches the mappings of a program with an unlimited stack")
#define ASSAY_CHECK_STRIPE_(s)                                                                     \
  ASSAY_CHECK_UNLIMITED_(s);                                                                       \
  ASSAY_CHECK_WINDOW_(s, LOW);                                                                     \
  ASSAY_CHECK_WINDOW_(s, PIE);                                                                     \
  ASSAY_CHECK_WINDOW_(s, MMAP);                                                                    \
  ASSAY_CHECK_STRIPE_PAIR_(s, 0);                                                                  \
  ASSAY_CHECK_STRIPE_PAIR_(s, 1);                                                                  \
  ASSAY_CHECK_STRIPE_PAIR_(s, 2);                                                                  \
  ASSAY_CHECK_STRIPE_PAIR_(s, 3);                                                                  \
  ASSAY_CHECK_STRIPE_PAIR_(s, 4);                                                                  \
  ASSAY_CHECK_STRIPE_PAIR_(s, 5);                                                                  \
  ASSAY_CHECK_STRIPE_PAIR_(s, 6);                                                                  \
  ASSAY_CHECK_STRIPE_PAIR_(s, 7)

ASSAY_CHECK_STRIPE_(1);
ASSAY_CHECK_STRIPE_(2);
ASSAY_CHECK_STRIPE_(3);
ASSAY_CHECK_STRIPE_(4);
ASSAY_CHECK_STRIPE_(5);
ASSAY_CHECK_STRIPE_(6);
ASSAY_CHECK_STRIPE_(7);
