// A hash table with open addressing in reserved memory, at most half full; further layouts are a
// loss. Threads that sample look layouts up without a lock while modules come. So an entry is
// complete before its hash is stored, with release, and nothing is ever changed or removed.
//
// Each unit that uses a record describes it; the first description stays. Of a leaf only the bytes
// that it lies in are kept: names and types are the tool's matter. Where a description ends early,
// the leaves that are missing have no place, because memory of the arena is zero.

#include "runtime/fields/records.h"

#include "abi/fields.h"
#include "abi/lines.h"
#include "abi/sites.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/sites.h"

namespace assay::fields {
namespace {

constexpr uint64_t kSlots = 1 << 16; // a power of two

constinit RecordLayout *records = nullptr;
constinit uint64_t record_count = 0;

RecordLayout *slot_of(uint64_t hash) {
  for (uint64_t i = hash;; i++) {
    RecordLayout &slot = records[i % kSlots];
    uint64_t at = __atomic_load_n(&slot.hash, __ATOMIC_ACQUIRE);
    if (at == hash || !at)
      return &slot;
  }
}

const uint8_t *past_text(const uint8_t *at, const uint8_t *end) {
  while (at < end && *at++)
    ;
  return at;
}

void add_record(const uint8_t *body, const uint8_t *end) {
  AssaySiteRecord head;
  __builtin_memcpy(&head, body, sizeof head);
  RecordLayout *slot = head.hash ? slot_of(head.hash) : nullptr;
  if (!slot || slot->hash)
    return;
  if (record_count >= kSlots / 2) {
    count_loss(ASSAY_LOSS_field_layouts, 1);
    return;
  }
  auto *places = (LeafPlace *)arena_allocate(head.leaves * sizeof(LeafPlace));
  if (!places)
    return;
  const uint8_t *at = past_text(past_text(body + sizeof head, end), end);
  for (uint32_t i = 0; i < head.leaves && at; i++) {
    uint64_t numbers[6] = {}; // offset and size in bits, flags, elements, stride, alignment
    for (uint64_t &n : numbers)
      at = at ? assay_get_number(at, end, &n) : nullptr;
    if (!at)
      break;
    at = past_text(past_text(at, end), end);
    const bool has_one_place = numbers[3] == 1 && !(numbers[2] & ASSAY_LEAF_ARRAY);
    places[i] = {(uint32_t)(numbers[0] / 8),
                 has_one_place ? (uint32_t)((numbers[0] % 8 + numbers[1] + 7) / 8) : 0};
  }
  slot->size = head.size;
  slot->leaves = head.leaves;
  slot->places = places;
  record_count++;
  __atomic_store_n(&slot->hash, head.hash, __ATOMIC_RELEASE);
}

} // namespace

void add_records(const ModuleSites &sites) {
  if (!records && !(records = (RecordLayout *)reserve(kSlots * sizeof(RecordLayout)))) {
    count_loss(ASSAY_LOSS_no_memory, 1);
    return;
  }
  each_site(sites.sites, sites.size,
            [](uint32_t kind, uint32_t, const char *body, const char *end) {
              if (kind == ASSAY_SITE_RECORD)
                add_record((const uint8_t *)body, (const uint8_t *)end);
            });
}

const RecordLayout *find_record(uint64_t hash) {
  RecordLayout *slot = records && hash ? slot_of(hash) : nullptr;
  return slot && slot->hash ? slot : nullptr;
}

} // namespace assay::fields
