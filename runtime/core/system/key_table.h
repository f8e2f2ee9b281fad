// A table by key, for rewriting a file: it is filled, then read through.
#pragma once

#include <stdint.h>

namespace assay {

// The entry of a key in a table of `slots`, a power of two up to 2^24, which start as zeros; a new one where
// there is none. Null when there is no room within `probes`.
template <typename Entry> Entry *find(Entry *table, uint64_t slots, uint64_t key, uint64_t probes) {
  key = key ? key : 1;
  uint64_t at = key * 0x9e3779b97f4a7c15ULL >> 40;
  for (uint64_t i = 0; i < probes; i++) {
    Entry &e = table[(at + i) % slots];
    if (!e.key)
      e.key = key;
    if (e.key == key)
      return &e;
  }
  return nullptr;
}

} // namespace assay
