// A set is a lock and a few entries. The table lives in reserved address space: sets that no
// context maps to cost nothing.

#include "runtime/heap/hib_table.h"

#include "runtime/core/stacks/stack_depot.h"
#include "runtime/core/system/arena.h"

namespace assay::heap {
namespace {

bool is_empty(const HibEntry &e) {
  return e.context == kNoContext;
}

void empty(HibEntry &e) {
  e.context = kNoContext;
  assay_hib_clear(&e.hib);
  e.histograms = {};
}

} // namespace

bool HibTable::create(uint64_t sets, uint64_t ways, Users users, Write write) {
  if (ways == 0) { // a set of one entry for each context there can be
    sets = StackDepot::kMaxContexts;
    ways = 1;
  }
  if (sets > StackDepot::kMaxContexts)
    sets = StackDepot::kMaxContexts;
  sets_ = sets ? sets : 1;
  per_set_ = UINT64_MAX / sets_ + 1;
  ways_ = ways < 64 ? ways : 64;
  while ((sets_ - 1) >> part_shift_ >= 64)
    part_shift_++;
  users_ = users;
  write_ = write;
  locks_ = (Set *)reserve(sets_ * sizeof(Set));
  entries_ = (HibEntry *)reserve(sets_ * ways_ * sizeof(HibEntry));
  return locks_ && entries_;
}

HibEntry *HibTable::find(Set &set, HibEntry *ways, ContextId context) {
  HibEntry *room = ways;
  for (HibEntry *e = ways; e < ways + ways_; e++) {
    if (e->context == context) {
      e->used_at = ++set.clock;
      return e;
    }
    if (!is_empty(*room) && (is_empty(*e) || (int32_t)(e->used_at - room->used_at) < 0))
      room = e;
  }
  if (!is_empty(*room))
    write_(*room);
  empty(*room);
  room->context = context;
  room->used_at = ++set.clock;
  set.used = true;
  return room;
}

// Before its lock is taken: what was never touched, no child of a fork need look at.
void HibTable::note_use(uint64_t set) {
  const uint64_t part = 1ULL << (set >> part_shift_);
  if (!(__atomic_load_n(&touched_, __ATOMIC_RELAXED) & part))
    __atomic_fetch_or(&touched_, part, __ATOMIC_RELAXED);
}

// The context modulo the number of sets: of what the context is a multiple of a set's share of
// 2^64, the part behind the point. Exact for 32 bits.
uint64_t HibTable::set_of(ContextId context) const {
  return (uint64_t)((unsigned __int128)(per_set_ * (uint32_t)context) * sets_ >> 64);
}

template <typename F> void HibTable::in_set_of(ContextId context, F f) {
  const uint64_t index = set_of(context);
  Set &set = locks_[index];
  note_use(index);
  if (users_ == Users::kOne)
    return f(find(set, entries_ + index * ways_, context));
  Locked locked(set.lock);
  f(find(set, entries_ + index * ways_, context));
}

void HibTable::add(ContextId context, const AssayObject &object) {
  uint64_t lifetime_us = object.free_us > object.alloc_us ? object.free_us - object.alloc_us : 0;
  in_set_of(context, [&](HibEntry *e) {
    assay_hib_add(&e->hib, &object);
    e->histograms.size[assay_histogram_bucket(object.size)]++;
    e->histograms.lifetime_us[assay_histogram_bucket(lifetime_us)]++;
  });
}

void HibTable::add_facts(ContextId context, const AssayHib &facts) {
  in_set_of(context, [&](HibEntry *e) { assay_hib_merge(&e->hib, &facts, 1); });
}

template <typename F> void HibTable::each_used_set(F f) {
  for (uint64_t parts = __atomic_load_n(&touched_, __ATOMIC_RELAXED); parts; parts &= parts - 1) {
    const uint64_t first = (uint64_t)__builtin_ctzll(parts) << part_shift_;
    for (uint64_t i = first; i < first + (1ULL << part_shift_) && i < sets_; i++)
      if (locks_[i].used) {
        Locked locked(locks_[i].lock);
        for (HibEntry *e = entries_ + i * ways_; e < entries_ + (i + 1) * ways_; e++)
          if (!is_empty(*e))
            f(*e);
        locks_[i].used = false;
      }
  }
}

void HibTable::write_all() {
  each_used_set([&](HibEntry &e) {
    write_(e);
    empty(e);
  });
}

void HibTable::clear() {
  each_used_set(empty);
}

void HibTable::reset_in_child() {
  if (!touched_)
    return;
  touched_ = 0;
  empty_span(locks_, sets_ * sizeof(Set)); // also of a set that a thread was about to use
  empty_span(entries_, sets_ * ways_ * sizeof(HibEntry));
}

} // namespace assay::heap
