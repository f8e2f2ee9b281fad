// The entry is a stream of numbers, made to be small in the program's file. A thread that samples asks for single counters: a
// table of their places is made when the first one does.

#include "runtime/fields/descriptors.h"

#include "abi/lines.h"
#include "runtime/core/system/arena.h"

namespace assay::fields {
namespace {

AssaySiteFields head_of(const UnitEntry &entry) {
  AssaySiteFields head;
  __builtin_memcpy(&head, entry.head, sizeof head);
  return head;
}

uint64_t take(const uint8_t *&at, const uint8_t *end) {
  uint64_t n = 0;
  const uint8_t *next = at ? assay_get_number(at, end, &n) : nullptr;
  at = next;
  return n;
}

constexpr int kNumbersOfItem = 8;

} // namespace

const uint32_t *index_counters(const UnitEntry &entry) {
  const AssaySiteFields head = head_of(entry);
  auto *index = (uint32_t *)arena_allocate(head.count * sizeof(uint32_t));
  if (!index)
    return nullptr;
  const uint8_t *at = entry.head + sizeof head + head.records * sizeof(uint64_t);
  for (uint32_t i = 0; i < head.functions; i++)
    while (at < entry.end && *at++)
      ;
  for (uint32_t i = 0; i < head.count && at; i++) {
    index[i] = (uint32_t)(at - entry.head);
    take(at, entry.end); // function
    take(at, entry.end); // line
    for (uint64_t left = kNumbersOfItem * take(at, entry.end); left > 0 && at; left--)
      take(at, entry.end);
  }
  return index;
}

void each_item(const UnitEntry &entry, const uint32_t *index, uint64_t counter,
               void (*f)(const Item &item, void *data), void *data) {
  const AssaySiteFields head = head_of(entry);
  if (counter >= head.count || !index[counter])
    return;
  const uint8_t *at = entry.head + index[counter], *end = entry.end;
  take(at, end); // function
  take(at, end); // line
  for (uint64_t n = take(at, end); n > 0 && at; n--) {
    uint64_t record = take(at, end);
    Item item = {};
    item.first = (uint32_t)take(at, end);
    item.more = (uint32_t)take(at, end);
    take(at, end); // reads
    item.writes = take(at, end) != 0;
    take(at, end); // copied
    item.base = (uint32_t)take(at, end);
    uint64_t start = take(at, end);
    item.start = start % 2 ? -(int64_t)((start + 1) / 2) : (int64_t)(start / 2);
    if (!at || record < ASSAY_RECORD_FIRST || record - ASSAY_RECORD_FIRST >= head.records)
      continue;
    __builtin_memcpy(&item.record,
                     entry.head + sizeof head + (record - ASSAY_RECORD_FIRST) * sizeof(uint64_t),
                     sizeof item.record);
    f(item, data);
  }
}

} // namespace assay::fields
