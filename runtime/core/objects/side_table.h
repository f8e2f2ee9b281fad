// The headers of objects that have none before them: what a pool hands out, and every block with
// the option headers=0. A hash table by address, because the address is all that a free brings.
//
// Such objects may share a 64-byte counter with their neighbours: see heap/counters.h.
//
// Source: heap-profiler.txt, "Runtime" ("we could instead use the metadata section").
#pragma once

#include "runtime/core/objects/chunk.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"

namespace assay {

struct SideObject {
  const void *block;
  ChunkHeader header;
  const void *pool; // that it belongs to; null for none
};

class SideTable {
public:
  // Reserves the address space; false when the kernel refuses. Idempotent.
  bool create();
  bool exists() const { return entries_.exists(); }

  // Adds an object, whose check field is set. True if an object of the same address was still
  // there: it has ended unseen, is replaced, and stands in *unseen.
  bool insert(SideObject object, SideObject *unseen);
  // Takes an object out; false if there is none at that address.
  bool take(const void *block, SideObject &out);
  bool find(const void *block, SideObject &out);
  // Changes flags or size of an object that find() gave.
  void update(const SideObject &object);

  // Calls f(object) for every object, each a copy that was complete at one moment; others may come
  // and go meanwhile.
  template <typename F> void for_each(F f) {
    for (uint32_t i = 1, end = __atomic_load_n(&next_, __ATOMIC_ACQUIRE); exists() && i < end;
         i++) {
      SideObject object;
      if (copy(i, object))
        f(object);
    }
  }

  // In the child of a fork: nobody holds a lock.
  void reset_in_child();

private:
  struct Entry {
    uint32_t next; // in its bucket, or in the list of free entries of its stripe
    uint32_t live;
    SideObject object;
  };
  struct Stripe {
    SpinLock lock;
    uint32_t free_list;
  };
  static constexpr size_t kBuckets = 1 << 22, kStripes = 256, kMaxEntries = 1 << 27;
  static size_t bucket_of(const void *block) {
    return ((uint64_t)block >> 3) * 0x9e3779b97f4a7c15ULL >> 42;
  }
  Stripe &stripe_of(size_t bucket) { return stripes_[bucket % kStripes]; }
  uint32_t *link_to(size_t bucket, const void *block);
  bool copy(uint32_t entry, SideObject &out);

  GrowingArray<Entry, kMaxEntries> entries_;
  GrowingArray<uint32_t, kBuckets> buckets_;
  Stripe stripes_[kStripes] = {};
  uint32_t next_ = 1;
};

} // namespace assay
