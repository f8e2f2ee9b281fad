// A hash table that grows. Finding an old context, the common case, takes no lock; adding one does.
// Where a third of the places is taken, a table of twice the size takes its place; a thread that
// still looks into the old one finds nothing there, and looks again under the lock. Not more than a
// third, because a search that goes on past the first place is foreseen badly, and where paths are
// joined most searches find nothing. Contexts are told apart by a 64-bit hash of their pcs, of
// which a place holds 40 bits and gives the others by where it is: among a million contexts, two
// share one with a probability of 1e-6.
//
// The number of contexts is bounded, because each costs a kilobyte of profile. Beyond half of the bound new paths keep
// their inner frames only, fewer and fewer of them, and paths that agree in these are one context: the frames next
// to an allocation say most. That is a loss.

#include "runtime/core/stacks/stack_depot.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/pages.h"

namespace assay {
namespace {

uint64_t mix(uint64_t hash) {
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93ULL;
  return hash ^ (hash >> 32);
}

constexpr uint64_t kFirstPlaces = 1 << 10;
constexpr size_t kRecent = 1024;
uint64_t slot_of(uint64_t hash) { // its upper bits are the better ones
  static_assert(kRecent == 1 << 10);
  return hash * 0x9e3779b97f4a7c15 >> (64 - 10);
}

// Contexts found lately, direct-mapped by hash: one load where the table takes three that depend on
// each other. By the hash of before it is mixed, which tells contexts apart as well. It is stored
// xored with the number, so that a pair torn by two threads matches nothing.
struct {
  struct {
    uint64_t hash_and_number, number;
  } slots[kRecent];
} constinit recent = {};

// What the table has of a context: its number, and above that the upper bits of its hash. So a
// context that is found need not be looked at, which would be another wait for memory where there
// are a million.
constexpr uint64_t kNumberMask = StackDepot::kMaxContexts - 1;

uint64_t place_of(uint64_t hash, uint32_t number) {
  return (hash & ~kNumberMask) | number;
}
uint8_t tag_of(uint64_t hash) {
  return (uint8_t)(hash >> 56) | 1; // not one of the bits that say where it is
}

uint32_t option_depth() {
  uint64_t depth = runtime.options.depth;
  return depth < kMaxDepth ? (uint32_t)depth : kMaxDepth;
}

// How many inner frames a new path keeps, when so many contexts are there.
uint32_t kept_frames(uint32_t contexts) {
  const uint64_t most = runtime.options.contexts;
  if (!most || contexts < most / 2)
    return kMaxDepth;
  if (contexts < most / 4 * 3)
    return 8;
  if (contexts < most / 8 * 7)
    return 4;
  return contexts < most ? 2 : 1;
}

} // namespace

bool StackDepot::reserve_table(Table *&table, uint64_t places) {
  table = (Table *)reserve(sizeof(Table) + places * (sizeof(uint64_t) + sizeof(uint8_t)));
  if (table)
    table->mask = places - 1;
  return table != nullptr;
}

void StackDepot::fill_place(Table &table, uint64_t hash, uint32_t number) {
  uint64_t at = hash & table.mask;
  while (table.tags()[at])
    at = (at + 1) & table.mask;
  __atomic_store_n(&table.places[at], place_of(hash, number), __ATOMIC_RELAXED);
  __atomic_store_n(&table.tags()[at], tag_of(hash), __ATOMIC_RELEASE);
}

bool StackDepot::create() {
  return contexts_.create() && reserve_table(table_, kFirstPlaces);
}

// A handler that interrupted the adding of a context keeps the parent's contexts, because it may go back there.
void StackDepot::reset_in_child(bool keeps_contexts) {
  lock_.reset();
  if (keeps_contexts)
    return;
  contexts_.clear();
  for (uint64_t i = 0; i <= table_->mask; i++)
    if (table_->tags()[i]) // else the page stays the parent's
      table_->tags()[i] = 0;
  next_ = 1;
  joins_ = false;
  start_generation(); // so that what was found lately is not
}

StackDepot::Path StackDepot::path_of(const CallChain &chain, uint32_t depth, TypeId type,
                                     OriginId origin) const {
  Path path = {chain.path_hash(depth), chain.depth() < depth ? chain.depth() : depth};
  path.hash ^= ((uint64_t)type << 32 | generation_ << 8 | path.depth) ^
               (uint64_t)origin * 0xc2b2ae3d27d4eb4fULL;
  return path;
}

inline void StackDepot::note_recursion(const CallChain &chain, ContextId context) {
  Context &c = *contexts_[(uint32_t)context];
  Recursion &r = c.recursion;
  uint64_t levels = chain.levels();
  uint32_t now = levels < UINT32_MAX ? (uint32_t)levels : UINT32_MAX;
  if (now > r.max) {
    uint32_t frame = chain.calls_to_deepest();
    r.frame = frame < c.depth ? frame : c.depth - 1;
    r.max = now;
  }
  if (!r.min || now < r.min)
    r.min = now;
  add_to(r.count, (uint64_t)1);
  add_to(r.levels, levels);
  add_to(recursions_, (uint64_t)1);
}

inline ContextId StackDepot::look_up(const CallChain &chain, TypeId type, OriginId origin) {
  Path path = path_of(chain, option_depth(), type, origin);
  auto &slot = recent.slots[slot_of(path.hash)];
  uint64_t number = __atomic_load_n(&slot.number, __ATOMIC_RELAXED);
  if ((__atomic_load_n(&slot.hash_and_number, __ATOMIC_RELAXED) ^ number) != path.hash || !number) {
    number = (uint32_t)find_or_add(chain, {mix(path.hash), path.depth}, type, origin);
    __atomic_store_n(&slot.number, number, __ATOMIC_RELAXED);
    __atomic_store_n(&slot.hash_and_number, path.hash ^ number, __ATOMIC_RELAXED);
  }
  return ContextId{(uint32_t)number};
}

ContextId StackDepot::intern(CallChain &chain, TypeId type, OriginId origin) {
  const ContextKey key = {type, origin, __atomic_load_n(&generation_, __ATOMIC_RELAXED)};
  ContextId context = chain.kept(key);
  if (context == kNoContext) {
    context = look_up(chain, type, origin);
    chain.keep(key, context);
  }
  if (context != kNoContext && chain.depth() && __builtin_expect(chain.recurs(), 0))
    note_recursion(chain, context);
  return context;
}

ContextId StackDepot::find(Table &table, const Path &path) {
  const uint8_t tag = tag_of(path.hash);
  for (uint64_t at = path.hash & table.mask;; at = (at + 1) & table.mask) {
    const uint8_t found = __atomic_load_n(&table.tags()[at], __ATOMIC_ACQUIRE);
    if (!found)
      return kNoContext;
    if (found != tag)
      continue;
    const uint64_t place = __atomic_load_n(&table.places[at], __ATOMIC_RELAXED);
    if (!((place ^ path.hash) & ~kNumberMask))
      return ContextId{(uint32_t)(place & kNumberMask)};
  }
}

ContextId StackDepot::find_or_add(const CallChain &chain, const Path &path, TypeId type,
                                  OriginId origin) {
  Path
      kept; // of the path, what a new context keeps: where there are many, they are joined by their inner frames
  auto find_known = [&](Table &table) {
    kept = path;
    ContextId known = find(table, path);
    uint32_t depth = known != kNoContext ? kMaxDepth : kept_frames(end());
    if (depth >= path.depth)
      return known;
    kept = path_of(chain, depth, type, origin);
    kept.hash = mix(kept.hash);
    return find(table, kept);
  };
  if (ContextId known = find_known(*__atomic_load_n(&table_, __ATOMIC_ACQUIRE));
      known != kNoContext)
    return known;
  Locked locked(lock_);
  if (ContextId known = find_known(*table_); known != kNoContext)
    return known;
  if (kept.depth < path.depth && !__atomic_exchange_n(&joins_, true, __ATOMIC_RELAXED))
    count_loss_quietly(ASSAY_LOSS_joined_contexts, 1);
  return add(chain, kept, type, origin);
}

// Under the lock.
ContextId StackDepot::add(const CallChain &chain, const Path &path, TypeId type, OriginId origin) {
  // Where the table cannot grow, it is filled further.
  if (next_ == kMaxContexts ||
      (next_ > table_->mask / 16 * 5 && !grow() && next_ > table_->mask / 8 * 7)) {
    count_loss(ASSAY_LOSS_no_memory, 1);
    return kNoContext;
  }
  auto *fresh = (Context *)arena_allocate(sizeof(Context) + path.depth * sizeof(uint64_t));
  if (!fresh)
    return kNoContext;
  fresh->type = type;
  fresh->origin = origin;
  fresh->hash = path.hash;
  fresh->depth = path.depth;
  fresh->cut = chain.depth() && (chain.is_cut() || chain.depth() > path.depth);
  for (uint32_t i = 0; i < path.depth; i++)
    fresh->pcs[i] = chain.pc(i);
  uint32_t number = next_;
  __atomic_store_n(&contexts_[number], fresh, __ATOMIC_RELEASE);
  __atomic_store_n(&next_, number + 1, __ATOMIC_RELEASE);
  fill_place(*table_, path.hash, number);
  return ContextId{number};
}

bool StackDepot::grow() {
  Table *old = table_, *larger;
  if (!reserve_table(larger, 2 * (old->mask + 1)))
    return false;
  for (uint32_t number = 1; number < next_; number++)
    fill_place(*larger, contexts_[number]->hash, number);
  __atomic_store_n(&table_, larger, __ATOMIC_RELEASE);
  for (uint64_t i = 0; i <= old->mask; i++) // its mask must stay: a thread may still search it
    __atomic_store_n(&old->tags()[i], 0, __ATOMIC_RELAXED);
  uint64_t from = page_up((uint64_t)old->places), to = page_down((uint64_t)old->end());
  if (from < to)
    empty_span((void *)from, to - from);
  return true;
}

void StackDepot::reset_recursions() {
  for (uint32_t i = 1, last = end(); i < last; i++)
    if (Context *c = get(ContextId{i}))
      c->recursion = {};
}

} // namespace assay
