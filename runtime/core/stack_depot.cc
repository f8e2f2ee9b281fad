// A fixed table of buckets, each a list that only grows at its head. Finding an old context, the
// common case, reads; adding one is a compare-and-swap. Contexts are told apart by a 64-bit hash of
// their pcs: among a million contexts, two share one with a probability of 3e-8.

#include "runtime/core/stack_depot.h"

#include "runtime/core/losses.h"

namespace assay {
namespace {

uint64_t hash_of(const Stack &stack, uint32_t type, uint32_t generation) {
  uint64_t hash = ((uint64_t)stack.depth << 32) ^ ((uint64_t)generation << 40) ^ type;
  for (uint32_t i = 0; i < stack.depth; i++) {
    hash = (hash ^ stack.pcs[i]) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

} // namespace

bool StackDepot::create() {
  return contexts_.create() && buckets_.create();
}

uint32_t StackDepot::intern(const Stack &stack, uint32_t type) {
  uint64_t hash = hash_of(stack, type, generation_);
  uint32_t *bucket = &buckets_[hash >> 46];
  static_assert(kBuckets == 1 << 18);
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
