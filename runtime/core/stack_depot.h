// Every distinct (call stack, allocated type, origin) once, with a number: the context.
#pragma once

#include "runtime/core/arena.h"
#include "runtime/core/unwind.h"

namespace assay {

struct Context {
  uint32_t next; // in its bucket; 0 ends
  uint32_t type; // abi/sites.h; 0 if unknown
  uint64_t hash;
  uint32_t origin; // core/origins.h; 0: malloc
  uint32_t depth;
  bool cut;
  uint64_t pcs[]; // innermost first
};

class StackDepot {
public:
  static constexpr size_t kMaxContexts = 1 << 24;

  bool create();
  // The number of the context, from 1; 0 when there is no memory. Lock-free.
  uint32_t intern(const Stack &stack, uint32_t type, uint32_t origin);
  // From now on every stack is a new context, also one of known addresses: a module was unloaded,
  // and another may come in its place.
  void start_generation() {
    __atomic_fetch_add(&generation_, 1, __ATOMIC_RELAXED);
    forget_memos();
  }
  // In the child of a fork: its file has no contexts yet, and few of the parent's will be in it.
  void forget();
  // Null while a context is being added by another thread.
  const Context *get(uint32_t context) {
    return __atomic_load_n(&contexts_[context], __ATOMIC_ACQUIRE);
  }
  // One past the newest number.
  uint32_t end() const { return __atomic_load_n(&next_, __ATOMIC_ACQUIRE); }

private:
  uint32_t find_or_add(const Stack &stack, uint32_t type, uint32_t origin, uint64_t hash);
  // Each context touches another page of the buckets: more of them cost small programs memory, fewer cost
  // time where there are a million contexts.
  static constexpr unsigned kBucketBits = 14;
  GrowingArray<const Context *, kMaxContexts> contexts_;
  GrowingArray<uint32_t, 1 << kBucketBits> buckets_;
  uint32_t next_ = 1;
  uint32_t generation_ = 0;
};

} // namespace assay
