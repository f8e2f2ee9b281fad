// The entry is a stream of numbers, made to be small in the program's file. A thread that samples
// asks for single stretches: a table of their places is made when the first one does.

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

const uint32_t *index_stretches(const UnitEntry &entry) {
  const AssaySiteFields head = head_of(entry);
  auto *index = (uint32_t *)arena_allocate(head.stretches * sizeof(uint32_t));
  if (!index)
    return nullptr;
  const uint8_t *at = entry.head + sizeof head + head.records * sizeof(uint64_t);
  for (uint32_t i = 0; i < head.functions; i++)
    while (at < entry.end && *at++)
      ;
  for (uint32_t i = 0; i < head.derived && at; i++)
    for (uint64_t terms = take(at, entry.end); terms > 0 && at; terms--)
      take(at, entry.end);
  for (uint32_t i = 0; i < head.stretches && at; i++) {
    index[i] = (uint32_t)(at - entry.head);
    take(at, entry.end); // function
    take(at, entry.end); // line
    take(at, entry.end); // executions
    for (uint64_t left = kNumbersOfItem * take(at, entry.end); left > 0 && at; left--)
      take(at, entry.end);
  }
  return index;
}

void each_item(const UnitEntry &entry, const uint32_t *index, uint64_t stretch,
               void (*f)(const Item &item, void *data), void *data) {
  const AssaySiteFields head = head_of(entry);
  if (stretch >= head.stretches || !index[stretch])
    return;
  const uint8_t *at = entry.head + index[stretch], *end = entry.end;
  take(at, end); // function
  take(at, end); // line
  take(at, end); // executions
  for (uint64_t n = take(at, end); n > 0 && at; n--) {
    uint64_t record = take(at, end);
    Item item = {};
    item.first = (uint32_t)take(at, end);
    item.more = (uint32_t)take(at, end);
    take(at, end); // reads
    item.writes = take(at, end) != 0;
    take(at, end); // copied
    const uint64_t pointers = take(at, end);
    item.base = ASSAY_BASE_OF_ITEM(pointers);
    item.element = ASSAY_ELEMENT_OF_ITEM(pointers);
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
