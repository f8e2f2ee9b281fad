// The heap info block as a C struct, with the two pure functions that everybody shares: put one
// finished object in, and join two blocks of the same context. The runtime uses them on every free,
// the tools when they merge profiles, so that both mean the same.
//
// Source: heap-profiler.txt, "Heap Info Block (HIB)". 64-bit counts throughout.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

typedef struct AssayHib {
#define ASSAY_HIB(type, name, merge, unit) type name;
#include "abi/hib.def"
} AssayHib;

// Histograms: bucket b counts values v with 2^b <= v < 2^(b+1); bucket 0 also holds v = 0, the last
// bucket also holds everything above.
#define ASSAY_HISTOGRAM_BUCKETS 40

typedef struct AssayHibHistograms {
  uint64_t size[ASSAY_HISTOGRAM_BUCKETS];        // bytes
  uint64_t lifetime_us[ASSAY_HISTOGRAM_BUCKETS]; // microseconds
} AssayHibHistograms;

static inline uint32_t assay_histogram_bucket(uint64_t value) {
  uint32_t bucket = value < 2 ? 0 : 63U - (uint32_t)__builtin_clzll(value);
  return bucket < ASSAY_HISTOGRAM_BUCKETS ? bucket : ASSAY_HISTOGRAM_BUCKETS - 1;
}

// One object at the end of its life (or at a walk of the live ones).
typedef struct AssayObject {
  uint64_t size;   // bytes asked for
  uint64_t reads;  // accesses by loads
  uint64_t writes; // accesses by stores
  uint64_t alloc_us, free_us;
  uint64_t blocks_spanned, blocks_touched;
  uint64_t touched_bytes;
  uint32_t alloc_cpu, free_cpu;
  uint32_t temporary; // 0 or 1
} AssayObject;

static inline void assay_hib_clear(AssayHib *h) {
#define ASSAY_HIB_CLEAR_sum 0
#define ASSAY_HIB_CLEAR_link 0
#define ASSAY_HIB_CLEAR_max 0
#define ASSAY_HIB_CLEAR_first 0
#define ASSAY_HIB_CLEAR_last 0
#define ASSAY_HIB_CLEAR_min UINT64_MAX
#define ASSAY_HIB(type, name, merge, unit) h->name = ASSAY_HIB_CLEAR_##merge;
#include "abi/hib.def"
#undef ASSAY_HIB_CLEAR_sum
#undef ASSAY_HIB_CLEAR_link
#undef ASSAY_HIB_CLEAR_max
#undef ASSAY_HIB_CLEAR_first
#undef ASSAY_HIB_CLEAR_last
#undef ASSAY_HIB_CLEAR_min
}

// numerator * scale / denominator, rounded down; 0 / 0 is 0. Where the product needs more than 64
// bits, the division comes first; a quotient above 64 bits stays at the largest value.
static inline uint64_t assay_scaled_ratio(uint64_t numerator, uint64_t scale,
                                          uint64_t denominator) {
  uint64_t product;
  if (denominator == 0)
    denominator = 1;
  if (!__builtin_mul_overflow(numerator, scale, &product))
    return product / denominator;
  return __builtin_mul_overflow(numerator / denominator, scale, &product) ? UINT64_MAX : product;
}

static inline void assay_hib_lower(uint64_t *least, uint64_t value) {
  if (value < *least)
    *least = value;
}
static inline void assay_hib_raise(uint64_t *most, uint64_t value) {
  if (value > *most)
    *most = value;
}

// Adds one object, which ended after every object of the block.
static inline void assay_hib_add(AssayHib *h, const AssayObject *o) {
  uint64_t lifetime = o->free_us > o->alloc_us ? o->free_us - o->alloc_us : 0;
  uint64_t accesses = o->reads + o->writes;
  uint64_t used = o->blocks_touched == o->blocks_spanned && o->blocks_spanned
                      ? 10000
                      : assay_scaled_ratio(o->blocks_touched, 10000, o->blocks_spanned);
  uint64_t density = accesses ? assay_scaled_ratio(accesses, 100, o->size) : 0;
  // A lifetime below one microsecond counts as one: the clock cannot tell.
  uint64_t lifetime_density =
      density ? assay_scaled_ratio(density, 1000000, lifetime ? lifetime : 1) : 0;
  if (h->alloc_count) {
    h->lifetime_overlaps += o->alloc_us < h->last_free_us && h->last_alloc_us < o->free_us;
    h->same_alloc_cpu += h->last_alloc_cpu == o->alloc_cpu;
    h->same_free_cpu += h->last_free_cpu == o->free_cpu;
  } else {
    h->first_alloc_us = o->alloc_us;
    h->first_free_us = o->free_us;
    h->first_alloc_cpu = o->alloc_cpu;
    h->first_free_cpu = o->free_cpu;
  }
  h->alloc_count++;
  h->reads += o->reads;
  h->writes += o->writes;
  assay_hib_lower(&h->access_min, accesses);
  assay_hib_raise(&h->access_max, accesses);
  h->size_total += o->size;
  assay_hib_lower(&h->size_min, o->size);
  assay_hib_raise(&h->size_max, o->size);
  h->lifetime_us_total += lifetime;
  assay_hib_lower(&h->lifetime_us_min, lifetime);
  assay_hib_raise(&h->lifetime_us_max, lifetime);
  h->blocks_spanned += o->blocks_spanned;
  h->blocks_touched += o->blocks_touched;
  h->touched_bytes += o->touched_bytes;
  h->used_centi_total += used;
  assay_hib_lower(&h->used_centi_min, used);
  assay_hib_raise(&h->used_centi_max, used);
  h->density_total += density;
  assay_hib_lower(&h->density_min, density);
  assay_hib_raise(&h->density_max, density);
  h->lifetime_density_total += lifetime_density;
  assay_hib_lower(&h->lifetime_density_min, lifetime_density);
  assay_hib_raise(&h->lifetime_density_max, lifetime_density);
  h->byte_us_total += assay_scaled_ratio(o->size, lifetime, 1);
  h->cold_byte_us_total += assay_scaled_ratio(o->size - o->touched_bytes, lifetime, 1);
  h->temporary_count += o->temporary;
  h->migrated_cpu += o->alloc_cpu != o->free_cpu;
  h->last_alloc_us = o->alloc_us;
  h->last_free_us = o->free_us;
  h->last_alloc_cpu = o->alloc_cpu;
  h->last_free_cpu = o->free_cpu;
}

// The block of a single object.
static inline AssayHib assay_hib_of(const AssayObject *o) {
  AssayHib h;
  assay_hib_clear(&h);
  assay_hib_add(&h, o);
  return h;
}

// Joins `later` to `earlier`, both of one context. Exact when every object of `later` was merged
// after every object of `earlier`; bridge = 0 leaves out the comparison of neighbours (blocks of
// different processes have none).
static inline void assay_hib_merge(AssayHib *earlier, const AssayHib *later, int bridge) {
  if (later->alloc_count == 0 && later->realloc_count == 0)
    return;
  if (earlier->alloc_count == 0 && earlier->realloc_count == 0) {
    *earlier = *later;
    return;
  }
  int both = bridge && earlier->alloc_count && later->alloc_count;
  uint64_t link_lifetime_overlaps = both && later->first_alloc_us < earlier->last_free_us &&
                                    earlier->last_alloc_us < later->first_free_us;
  uint64_t link_same_alloc_cpu = both && earlier->last_alloc_cpu == later->first_alloc_cpu;
  uint64_t link_same_free_cpu = both && earlier->last_free_cpu == later->first_free_cpu;
  int take_first = earlier->alloc_count == 0, take_last = later->alloc_count != 0;
#define ASSAY_HIB_JOIN_sum(name) earlier->name += later->name;
#define ASSAY_HIB_JOIN_link(name) earlier->name += later->name + link_##name;
#define ASSAY_HIB_JOIN_min(name)                                                                   \
  if (later->name < earlier->name)                                                                 \
    earlier->name = later->name;
#define ASSAY_HIB_JOIN_max(name)                                                                   \
  if (later->name > earlier->name)                                                                 \
    earlier->name = later->name;
#define ASSAY_HIB_JOIN_first(name)                                                                 \
  if (take_first)                                                                                  \
    earlier->name = later->name;
#define ASSAY_HIB_JOIN_last(name)                                                                  \
  if (take_last)                                                                                   \
    earlier->name = later->name;
#define ASSAY_HIB(type, name, merge, unit) ASSAY_HIB_JOIN_##merge(name)
#include "abi/hib.def"
#undef ASSAY_HIB_JOIN_sum
#undef ASSAY_HIB_JOIN_link
#undef ASSAY_HIB_JOIN_min
#undef ASSAY_HIB_JOIN_max
#undef ASSAY_HIB_JOIN_first
#undef ASSAY_HIB_JOIN_last
}

static inline void assay_histograms_add(AssayHibHistograms *into, const AssayHibHistograms *other) {
  for (int bucket = 0; bucket < ASSAY_HISTOGRAM_BUCKETS; bucket++) {
    into->size[bucket] += other->size[bucket];
    into->lifetime_us[bucket] += other->lifetime_us[bucket];
  }
}
