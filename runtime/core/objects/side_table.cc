// Buckets are lists of entries, entries are numbers in one growing array, so that a walk needs no
// locks but the one of the entry's stripe. Refused: open addressing, which must move everything when
// it grows, while other threads free.

#include "runtime/core/objects/side_table.h"

#include "runtime/core/system/losses.h"

namespace assay {

bool SideTable::create() {
  return exists() || (buckets_.create() && entries_.create());
}

// The link that leads to the object's entry, or to 0 at the end of its bucket. Under the lock.
uint32_t *SideTable::link_to(size_t bucket, const void *block) {
  uint32_t *link = &buckets_[bucket];
  while (*link && entries_[*link].object.block != block)
    link = &entries_[*link].next;
  return link;
}

bool SideTable::insert(SideObject object, SideObject *unseen) {
  size_t bucket = bucket_of(object.block);
  Stripe &stripe = stripe_of(bucket);
  Locked locked(stripe.lock);
  uint32_t *link = link_to(bucket, object.block);
  if (*link) {
    *unseen = entries_[*link].object;
    entries_[*link].object = object;
    return true;
  }
  uint32_t number = stripe.free_list;
  if (number) {
    stripe.free_list = entries_[number].next;
  } else {
    number = __atomic_fetch_add(&next_, 1, __ATOMIC_ACQ_REL);
    if (number >= kMaxEntries) {
      count_loss(ASSAY_LOSS_no_memory, 1);
      return false;
    }
  }
  entries_[number] = {0, 1, object};
  *link = number;
  return false;
}

bool SideTable::take(const void *block, SideObject &out) {
  if (!exists())
    return false;
  size_t bucket = bucket_of(block);
  Stripe &stripe = stripe_of(bucket);
  Locked locked(stripe.lock);
  uint32_t *link = link_to(bucket, block), number = *link;
  if (!number)
    return false;
  Entry &entry = entries_[number];
  out = entry.object;
  *link = entry.next;
  entry = {stripe.free_list, 0, {}};
  stripe.free_list = number;
  return true;
}

bool SideTable::find(const void *block, SideObject &out) {
  if (!exists())
    return false;
  size_t bucket = bucket_of(block);
  Locked locked(stripe_of(bucket).lock);
  uint32_t number = *link_to(bucket, block);
  if (number)
    out = entries_[number].object;
  return number != 0;
}

void SideTable::update(const SideObject &object) {
  size_t bucket = bucket_of(object.block);
  Locked locked(stripe_of(bucket).lock);
  if (uint32_t number = *link_to(bucket, object.block))
    entries_[number].object = object;
}

// The lock of an entry is that of its object's bucket, which may change while we look.
bool SideTable::copy(uint32_t number, SideObject &out) {
  Entry &entry = entries_[number];
  const void *block = __atomic_load_n(&entry.object.block, __ATOMIC_RELAXED);
  if (!block)
    return false;
  Locked locked(stripe_of(bucket_of(block)).lock);
  if (!entry.live || entry.object.block != block)
    return false;
  out = entry.object;
  return true;
}

void SideTable::reset_in_child() {
  for (Stripe &stripe : stripes_)
    stripe.lock.reset();
}

} // namespace assay
