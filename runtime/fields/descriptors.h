// What a stretch of code accesses, for threads that sample: the entries of abi/fields.h, made findable by its number.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "abi/fields.h"

namespace assay::fields {

// Accesses of a stretch to leaves of one object.
struct Item {
  uint64_t record; // hash
  uint32_t first, more;
  bool writes;
  uint32_t base, element; // of the latter, from 1
  int64_t start;          // of the object, from the base
};

// The entry of a unit: the head behind its AssaySite, and its end.
struct UnitEntry {
  const uint8_t *head, *end;
};

// Where each stretch begins in the entry. Null if there is no memory. Made once a unit.
const uint32_t *index_stretches(const UnitEntry &entry);

// Calls f(item, data) for each item of a stretch that has a record.
void each_item(const UnitEntry &entry, const uint32_t *index, uint64_t stretch,
               void (*f)(const Item &item, void *data), void *data);

} // namespace assay::fields
