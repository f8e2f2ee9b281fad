// The table of heap info blocks: a set-associative cache of contexts, indexed by context modulo the
// number of sets (a prime, because contexts are numbered in order and programs allocate in
// patterns). An entry that must make room is written to the profile at once; readers join what
// belongs together.
//
// Source: heap-profiler.txt, "HIB Table".
#pragma once

#include "abi/records.h"
#include "runtime/core/ids.h"
#include "runtime/core/system/lock.h"

namespace assay::heap {

struct HibEntry {
  ContextId context; // kNoContext: empty
  uint32_t used_at;  // of its set's clock: the oldest entry makes room
  AssayHib hib;
  AssayHibHistograms histograms;
};

class HibTable {
public:
  using Write = void (*)(const HibEntry &);
  enum class Users { kOne, kMany }; // one thread at a time, or many at once

  // ways 0: a table in which every context has its place, `sets` is ignored. `write` puts one entry
  // into the profile. False when there is no memory.
  bool create(uint64_t sets, uint64_t ways, Users users, Write write);

  // Adds one object to its context.
  void add(ContextId context, const AssayObject &object);
  // Joins facts that are not an object (reallocs).
  void add_facts(ContextId context, const AssayHib &facts);

  // Writes every entry that holds something, and empties it.
  void write_all();
  // Empties every entry, unwritten.
  void clear();
  // In the child of a fork: clear, and nobody holds a lock.
  void reset_in_child();

private:
  struct Set {
    SpinLock lock;
    bool used;
    uint32_t clock;
  };
  HibEntry *find(Set &set, HibEntry *ways, ContextId context);
  template <typename F> void in_set_of(ContextId context, F f);
  template <typename F> void each_used_set(F f);
  void note_use(uint64_t set);
  uint64_t set_of(ContextId context) const;

  uint64_t sets_ = 0, ways_ = 0;
  uint64_t per_set_ = 0; // 2^64 divided by the number of sets
  Users users_ = Users::kMany;
  // A bit for each part of the sets: one of them was touched.
  uint64_t touched_ = 0;
  uint32_t part_shift_ = 0; // sets of a part, as a power of two
  Set *locks_ = nullptr;
  HibEntry *entries_ = nullptr;
  Write write_ = nullptr;
};

} // namespace assay::heap
