// Memory that `assay values` shares with the programs whose threads it samples from inside
// (runtime/upcall). The tool makes it; a program maps the first part to read it, so that no stray
// store of its own can change decoded code, and the second to write.
//
//   read    header | pages (abi/published_code.h) | entries | places
//   write   news | slots, one for each thread: what its samples say, in a ring
//
// A place says which published page lies at an address of a program: a hash table, of which the
// tool writes entries and changes numbers, and never removes any. A program is known by a number
// that its children share after fork, for they have the same mappings. Libraries may come where
// others were: so code of what the loader has loaded is looked up by this number and a hash of the
// file's begin, which has its build id.
#pragma once

#include "abi/published_code.h"
#include "abi/samples.h"

#include <stdint.h>

#define ASSAY_UPCALL_ENVIRONMENT "ASSAY_VALUES_SHARED" // where a program finds it: a path
#define ASSAY_UPCALL_MAGIC "AssayUp"
#define ASSAY_UPCALL_VERSION 3
#define ASSAY_UPCALL_SIGNAL 0x7961737341ULL // by which our own signals are known

#define ASSAY_UPCALL_PLACES 131072u // a power of two
#define ASSAY_UPCALL_PROBES 64u     // entries that a place is looked for in
#define ASSAY_UPCALL_SLOTS 512u
#define ASSAY_UPCALL_RING_BYTES (256u << 10) // a power of two
#define ASSAY_UPCALL_LEVELS 4                // of the memory hierarchy: L1, L2, L3, memory

struct assay_upcall_header {
  char magic[8];
  uint32_t version;
  uint32_t tool;      // its process
  uint32_t collector; // enum AssayCollector
  uint32_t is_over;   // no more samples are taken
  // Settings of samples, as in values/collector.h.
  uint32_t instructions, is_random_length, most_skipped, most_steps;
  uint64_t period_ns;
  // The perf event that each thread opens.
  uint32_t event_type, is_frequency;
  uint64_t event_config, event_period;
  // Loads are timed: the upper limit of each class, in cycles, and the levels that are in it, a bit each.
  uint32_t is_timed;
  uint32_t level_limits[ASSAY_UPCALL_LEVELS];
  uint32_t level_sets[ASSAY_UPCALL_LEVELS];
  uint32_t page_count, entry_count;
  uint64_t pages_at, entries_at, places_at, news_at, slots_at, bytes; // in the shared memory
};

struct assay_upcall_place {
  uint64_t page;    // address
  uint32_t program; // assay_upcall_program_with()
  uint32_t number;  // of the published page; 0: the entry is empty. Written last
};

struct assay_upcall_news {
  uint32_t posted;   // changes with each miss; the tool waits on it
  uint32_t programs; // numbers given so far
  uint32_t unsampled_threads;
  uint32_t refused_programs; // that take all signals for themselves
  uint64_t interrupts;
  uint64_t in_kernel; // of these, that came in a system call
  uint64_t blocked;   // that came late, because the program blocks SIGTRAP
  uint64_t lost;      // samples without room
};

struct assay_upcall_slot {
  uint32_t is_claimed; // 1: by a thread; the tool frees it when the thread is gone
  uint32_t pid, tid;
  uint32_t reserved;
  uint64_t written; // bytes, by the thread; what lies before it is complete
  uint64_t read;    // bytes, by the tool
  uint8_t header_end[4096 - 32];
  uint8_t ring[ASSAY_UPCALL_RING_BYTES];
};

// Before each message in a ring; messages never go over its end.
struct assay_upcall_message {
  uint32_t
      bytes; // of the message, a multiple of 8; ASSAY_UPCALL_SKIP: the rest of the ring is empty
  uint32_t program;
};
#define ASSAY_UPCALL_SKIP UINT32_MAX

// A file by its first bytes: of what is mapped there, of the file itself. Never 0, which stands for
// what the loader has not loaded.
#define ASSAY_UPCALL_FILE_BYTES 1024

static inline uint64_t assay_upcall_file_hash(const uint64_t *words) {
  uint64_t sums[4] = {1, 2, 3, 4};
  for (unsigned i = 0; i < ASSAY_UPCALL_FILE_BYTES / 8; i++)
    sums[i % 4] = (sums[i % 4] ^ words[i]) * 0x9e3779b97f4a7c15ULL;
  uint64_t hash = sums[0] ^ sums[1] >> 7 ^ sums[2] >> 13 ^ sums[3] >> 19;
  return (hash ^ hash >> 32) | 1;
}

static inline uint32_t assay_upcall_program_with(uint32_t program, uint64_t file_hash) {
  return program ^ (uint32_t)file_hash;
}

static inline uint32_t assay_upcall_place_hash(uint64_t page, uint32_t program) {
  return (uint32_t)((page >> ASSAY_CODE_PAGE_BITS ^ (uint64_t)program << 40) *
                        0x9e3779b97f4a7c15ULL >>
                    40);
}

#ifdef __cplusplus
static_assert(sizeof(struct assay_upcall_header) <= 4096, "one page");
static_assert(sizeof(struct assay_upcall_slot) == 4096 + ASSAY_UPCALL_RING_BYTES, "whole pages");
#endif
