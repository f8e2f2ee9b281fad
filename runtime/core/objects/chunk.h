// The chunk header: what is kept with each block that the program allocated, in the 32 bytes before
// it.
//
//        +---------------------------------+---------------------------------------+
//   -32  | size: 48              flags: 16 | time_us: 48                   cpu: 16 |
//   -16  | context: 32       to_base: 32   | check: 64                             |
//        +---------------------------------+---------------------------------------+
//     0  | the program's bytes, 32-byte aligned
//
// The header keeps two allocations from ever sharing a 64-byte counter: of two neighbours, the
// second's header fills a whole aligned 32 bytes between them. The allocator below promises 16-byte
// aligned blocks: the header sits before the next 32-byte boundary, for which 48 bytes more are asked
// for, or 32 where the allocator's blocks happen to lie evenly (allocate.cc).
//
// Whether a pointer is ours is never decided by reading before it, but by the chunk map: one byte
// for each 32 bytes of address space, odd where a live chunk begins. A byte and not a bit, so that
// setting it needs no atomic operation; 4 TiB of address space, of which only the touched pages
// cost memory.
//
// Source: heap-profiler.txt, "ChunkHeader"; the type id that is a field there belongs to the
// context here.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/core/ids.h"

namespace assay {

constexpr size_t kChunkAlign = 32;
constexpr size_t kChunkOverhead = 48;

// Objects of that size begin on a block of 64 bytes, for 32 bytes more: how many blocks they span, and
// so what share of them is used, must not depend on where the allocator happened to put them. Smaller
// ones do where it costs nothing.
constexpr size_t kLargeSize = 256;

enum ChunkFlags : uint64_t {
  kPoolMemory = 1,   // became the memory of a pool: no object any more
  kSharedBlocks = 2, // has no header before it, so its first and last 64 bytes may hold others too
  kMapped = 4,       // from mmap
};

struct ChunkHeader {
  uint64_t size : 48;    // bytes asked for
  uint64_t flags : 16;   // ChunkFlags
  uint64_t time_us : 48; // of the allocation
  uint64_t cpu : 16;
  ContextId context;
  uint32_t to_base; // bytes from the allocator's block to the program's
  uint64_t check;   // chunk_check(), so that a walk does not believe memory that was reused
};
static_assert(sizeof(ChunkHeader) == 32, "two allocations must not share a counter");

// glibc's free, where code gives it an object unseen, takes this for the chunk's size: it lies where that would, and is
// none, so that free ends the program there, before it harms the heap (core/process/foreign_free.h says why it died).
static_assert(offsetof(ChunkHeader, check) == sizeof(ChunkHeader) - 8);
constexpr uint64_t kNoSize = 8, kNoSizeMask = 15;
inline uint64_t chunk_check(const void *block, const ChunkHeader &h) {
  uint64_t x = (uint64_t)block ^ ((uint64_t)h.context << 32) ^ h.size;
  return ((x * 0x9e3779b97f4a7c15ULL) & ~kNoSizeMask) | kNoSize;
}

inline ChunkHeader *header_of(const void *block) {
  return (ChunkHeader *)block - 1;
}

// The map. Reserved by create(); until then no pointer is ours.
class ChunkMap {
public:
  static constexpr unsigned kRegionShift = 22; // 4 MiB of program, 128 KiB of map
  bool create();
  bool exists() const { return map_ != nullptr; }
  bool owns(const void *block) const {
    return any_ && ((uintptr_t)block % kChunkAlign) == 0 &&
           __atomic_load_n(at(block), __ATOMIC_RELAXED);
  }
  void insert(const void *block) {
    uint8_t *region = &regions_[(uintptr_t)block >> kRegionShift];
    if (__builtin_expect(!*region, 0)) {
      *region = groups_[(uintptr_t)block >> kGroupShift] = 1;
      any_ = true;
    }
    __atomic_store_n(at(block), 1, __ATOMIC_RELEASE);
  }
  // Marks a live chunk until its end; false if it is not live.
  bool watch(const void *block) {
    uint8_t live = 1;
    return __atomic_compare_exchange_n(at(block), &live, 3, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED) ||
           live == 3;
  }
  bool is_watched(const void *block) const {
    return __atomic_load_n(at(block), __ATOMIC_RELAXED) == 3;
  }
  // The chunk is about to be given back: waits while a walk reads the headers around it.
  void remove(const void *block) {
    __atomic_store_n(at(block), 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(
        __ATOMIC_SEQ_CST); // the walker makes it a fence for all threads (membarrier)
    uint64_t window = __atomic_load_n(&walked_window_, __ATOMIC_RELAXED);
    if (__builtin_expect(window == window_of(block), 0))
      wait_for_walk(window);
  }

  // Around reading the headers of chunks in the 256 KiB from `begin` on, which is a multiple of that: no thread gives
  // one of them back meanwhile. False where the kernel cannot see to that. One walker at a time, which no signal
  // handler of the program interrupts.
  bool begin_window(uintptr_t begin);
  void end_window();
  void reset_in_child();
  static constexpr unsigned kWindowShift = 18;

  // Calls f(first byte of program, its map, bytes of map) for each region that ever held a chunk.
  template <typename F> void for_each_region(F f) const {
    for (size_t group = 0; map_ && group < kGroups; group++)
      for (size_t i = 0; groups_[group] && i < kRegionsPerGroup; i++) {
        size_t region = group * kRegionsPerGroup + i;
        if (regions_[region])
          f(region << kRegionShift, map_ + (region << (kRegionShift - 5)), kRegionBytes);
      }
  }

private:
  void note_spans() const;
  static uint64_t window_of(const void *block) { return (uintptr_t)block >> kWindowShift; }
  void wait_for_walk(uint64_t window);
  static constexpr unsigned kGroupShift = 32;
  static constexpr uint64_t kAddressBits = 47;
  static constexpr size_t kGroups = 1ULL << (kAddressBits - kGroupShift);
  static constexpr size_t kRegionsPerGroup = 1ULL << (kGroupShift - kRegionShift);
  static constexpr size_t kRegionBytes = (1ULL << kRegionShift) / kChunkAlign;
  uint8_t *at(const void *block) const { return map_ + (uintptr_t)block / kChunkAlign; }
  bool any_ = false; // was there ever one? Most tools need none
  bool has_barrier_ = false;
  uint64_t walked_window_ = 0; // 0: none; no chunk lies in the lowest one
  uint8_t *map_ = nullptr;
  uint8_t *regions_ = nullptr;
  uint8_t *groups_ = nullptr;
};

} // namespace assay
