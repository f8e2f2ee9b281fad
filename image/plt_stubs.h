// The stubs through which a file calls into others (procedure linkage table).
#pragma once

#include "image/elf_tables.h"

#include <cstdint>
#include <vector>

namespace image {

struct PltStub {
  uint64_t begin = 0, end = 0;
  // Address of the word that it jumps through; 0 for the common beginning of a lazily bound table,
  // which calls the loader.
  uint64_t slot = 0;
};

// The stubs of one stretch of code, by address and not overlapping; nothing if it is not a table of
// stubs. `entry_size` as in CodeRegion.
std::vector<PltStub> plt_stubs(const ElfTables &tables, AddressRange range, uint64_t entry_size);

} // namespace image
