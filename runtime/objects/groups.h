// What objects alike have used: a set-associative table of groups. A group is a context, the
// context that frees, and a class of sizes (assay_size_class); an entry that must make room is
// written to the profile at once, and readers add up.
//
// Objects of one group fold by offset: unit i of each is added to the cell of unit i. So that a
// group has at most 256 cells, those of large objects are of several units each; which places of 64
// bytes are used is kept for these, too, since "every fourth word" shows nowhere else.
//
// Source: cache-fragmentation.txt, "Memory allocation wrapping" ("We may coalesce them based on the
// allocation/free callstack").
#pragma once

#include "abi/records.h"
#include "runtime/core/ids.h"
#include "runtime/core/system/lock.h"
#include "runtime/objects/words.h"

namespace assay::objects {

struct GroupKey {
  uint32_t kind; // enum AssayObjectKind; 0: an empty entry
  ContextId context, free_context;
  uint64_t class_bytes;
};

// Objects of at most so many words are small: each word has its cell.
constexpr uint32_t kSmallWords = 32;

// What the newest small objects of a group have used, by word: a word adds 128 at most, so that 16 bits hold it for
// kObjects of them. The last vector of an object may reach beyond its words, with zeros.
struct RecentWords {
  static constexpr uint32_t kObjects = 256;
  uint32_t objects;
  uint16_t hotness[kSmallWords + 1 + 16], accessed[kSmallWords + 1 + 16];
};

// A group of at most so many cells.
struct Group {
  GroupKey key;
  uint32_t used_at; // of its set's clock: the oldest entry makes room
  uint32_t cell_units;
  uint32_t positions; // cells before those of offsets: 0, or the units of a line, a power of two
  uint32_t cell_count;
  AssayObjectSums sums;
  RecentWords recent; // not in the cells yet
  AssayWordCell cells[];
};

class GroupTable {
public:
  // `sets` is a power of two. False when there is no memory.
  bool create(uint32_t sets, uint32_t cells);
  // Calls f(group) with the group of the key, under its lock; groups that make room are written as of `walk`.
  template <typename F> void with(const GroupKey &key, uint64_t walk, F f);
  void write_all(uint64_t walk); // and empties
  void clear();
  void reset_in_child();

private:
  static constexpr uint32_t kWays = 4;
  struct Set {
    SpinLock lock;
    bool used;
    uint32_t clock;
  };
  Group *entry(uint64_t set, uint32_t way) {
    return (Group *)(entries_ + (set * kWays + way) * entry_bytes_);
  }
  Group *find(uint64_t set, const GroupKey &key, uint64_t walk);
  template <typename F> void each_used(F f);
  uint32_t sets_ = 0, cells_ = 0;
  uint64_t entry_bytes_ = 0;
  Set *locks_ = nullptr;
  char *entries_ = nullptr;
};

// The groups of small objects and of large ones.
class Groups {
public:
  bool create(uint32_t sets);
  // Adds what an object has used so far. take: it ends, and its words are cleared. walk: 0, or of
  // live objects. Thread-safe.
  void add(uint32_t kind, ContextId context, ContextId free_context, const void *start,
           uint64_t size, bool take, uint64_t walk);
  void write_all(uint64_t walk);
  void clear();
  void reset_in_child();

private:
  GroupTable small_, large_;
};

} // namespace assay::objects
