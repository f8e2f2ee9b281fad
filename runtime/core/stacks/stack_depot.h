// Every distinct (call path, allocated type, origin) once, with a number: the context (ContextId).
#pragma once

#include "runtime/core/ids.h"
#include "runtime/core/stacks/call_chain.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/lock.h"

namespace assay {

// How deep the recursion on a context's path was, over its allocations that saw one.
struct Recursion {
  uint64_t count, levels; // allocations; the sum of their levels
  uint32_t min, max;      // levels
  uint32_t frame;         // of the context's frames, the one whose function recurs; innermost is 0
};

struct Context {
  uint64_t hash;
  TypeId type;
  OriginId origin;
  uint32_t depth;
  bool cut;
  Recursion recursion;
  uint64_t pcs[]; // innermost first
};

class StackDepot {
public:
  static constexpr size_t kMaxContexts = 1 << 24;

  bool create();
  // The context; kNoContext when there is no memory. Lock-free, but for new contexts.
  ContextId intern(CallChain &chain, TypeId type, OriginId origin);
  // From now on every path is a new context, also one of known addresses: a module was unloaded,
  // and another may come in its place.
  void start_generation() {
    __atomic_fetch_add(&generation_, 1, __ATOMIC_RELAXED);
    invalidate_call_chains();
  }
  // In the child of a fork: its file has no contexts yet, and few of the parent's will be in it.
  void reset_in_child(bool keeps_contexts);
  // Null while a context is being added by another thread.
  Context *get(ContextId context) {
    return __atomic_load_n(&contexts_[(uint32_t)context], __ATOMIC_ACQUIRE);
  }
  // One past the newest number.
  uint32_t end() const { return __atomic_load_n(&next_, __ATOMIC_ACQUIRE); }
  // Counts what was noted of recursions so far: unchanged, where it says the same again.
  uint64_t recursions() const { return __atomic_load_n(&recursions_, __ATOMIC_RELAXED); }
  void reset_recursions();

private:
  // Open addressing: contexts at their hash or in the places behind it. A place holds the number
  // and what of the hash there is room for; its tag seven bits of the hash, or 0 where it is free.
  // Most places that are looked at hold another context, which the tags say, and those stay in a
  // near cache.
  struct Table {
    uint64_t mask; // places - 1: a power of two
    uint64_t places[];
    uint8_t *tags() { return (uint8_t *)(places + mask + 1); }
    uint8_t *end() { return tags() + mask + 1; }
  };
  struct Path {
    uint64_t hash; // mixed, in the table
    uint32_t depth;
  };
  static void fill_place(Table &table, uint64_t hash, uint32_t number);
  static bool reserve_table(Table *&table, uint64_t places);
  Path path_of(const CallChain &chain, uint32_t depth, TypeId type, OriginId origin) const;
  static ContextId find(Table &table, const Path &path);
  ContextId find_or_add(const CallChain &chain, const Path &path, TypeId type, OriginId origin);
  ContextId add(const CallChain &chain, const Path &path, TypeId type, OriginId origin);
  bool grow();
  ContextId look_up(const CallChain &chain, TypeId type, OriginId origin);
  void note_recursion(const CallChain &chain, ContextId context);

  GrowingArray<Context *, kMaxContexts> contexts_;
  Table *table_ = nullptr;
  SpinLock lock_; // of adding
  uint32_t next_ = 1;
  uint32_t generation_ = 0;
  uint64_t recursions_ = 0;
  bool joins_ = false; // some paths are joined: the limit was reached
};

} // namespace assay
