// A fixed table of buckets, each a list that only grows at its head. Finding an old context, the
// common case, reads; adding one is a compare-and-swap. Contexts are told apart by a 64-bit hash of
// their pcs: among a million contexts, two share one with a probability of 3e-8.

#include "runtime/core/stack_depot.h"

#include "runtime/core/losses.h"

namespace assay {
namespace {

uint64_t mix(uint64_t hash) {
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93ULL;
  return hash ^ (hash >> 32);
}

constexpr size_t kRecent = 1024;

// Contexts found lately, direct-mapped by hash: one load where the table takes three that depend on
// each other. The hash is stored xored with the number, so that a pair torn by two threads matches
// nothing.
struct {
  struct {
    uint64_t hash_and_context, context;
  } slots[kRecent];
} constinit recent = {};

} // namespace

bool StackDepot::create() {
  return contexts_.create() && buckets_.create();
}

void StackDepot::forget() {
  contexts_.clear();
  buckets_.clear();
  next_ = 1;
  start_generation(); // so that what was found lately is not
}

uint32_t StackDepot::intern(const Stack &stack, uint32_t type, uint32_t origin) {
  uint64_t hash = mix(stack.hash ^ ((uint64_t)type << 32 | generation_ << 8 | stack.depth) ^
                      origin * 0xc2b2ae3d27d4eb4fULL);
  auto &slot = recent.slots[hash % kRecent];
  uint64_t context = __atomic_load_n(&slot.context, __ATOMIC_RELAXED);
  if ((__atomic_load_n(&slot.hash_and_context, __ATOMIC_RELAXED) ^ context) == hash && context)
    return (uint32_t)context;
  context = find_or_add(stack, type, origin, hash);
  __atomic_store_n(&slot.context, context, __ATOMIC_RELAXED);
  __atomic_store_n(&slot.hash_and_context, hash ^ context, __ATOMIC_RELAXED);
  return (uint32_t)context;
}

uint32_t StackDepot::find_or_add(const Stack &stack, uint32_t type, uint32_t origin,
                                 uint64_t hash) {
  uint32_t *bucket = &buckets_[hash >> (64 - kBucketBits)];
  uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE), searched_to = 0;
  Context *fresh = nullptr;
  uint32_t number = 0;
  for (;;) {
    for (uint32_t i = head; i != searched_to; i = contexts_[i]->next)
      if (contexts_[i]->hash == hash && contexts_[i]->depth == stack.depth)
        return i;
    if (!fresh) {
      fresh = (Context *)arena_allocate(sizeof(Context) + stack.depth * sizeof(uint64_t));
      if (!fresh)
        return 0;
      number = __atomic_fetch_add(&next_, 1, __ATOMIC_ACQ_REL);
      if (number >= kMaxContexts) {
        count_loss(ASSAY_LOSS_no_memory, 1);
        return 0;
      }
      fresh->type = type;
      fresh->origin = origin;
      fresh->hash = hash;
      fresh->depth = stack.depth;
      fresh->cut = stack.cut;
      for (uint32_t i = 0; i < stack.depth; i++)
        fresh->pcs[i] = stack.pcs[i];
      __atomic_store_n(&contexts_[number], fresh, __ATOMIC_RELEASE);
    }
    fresh->next = searched_to = head;
    if (__atomic_compare_exchange_n(bucket, &head, number, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      return number;
  }
}

} // namespace assay
