// How long a load takes that is answered by each level of the memory hierarchy: measured, once, where the tool starts.
#pragma once

#include "abi/upcall.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace values {

// Classes of loads by their time: all up to `limits[i]` cycles (abi/timed_load.h, what timing costs
// included) and above the one before are of the levels in `sets[i]`: bits 1 L1, 2 L2, 4 L3, 8
// memory. A class that is not used has the set of the one before it. Several bits where the counter
// is too coarse, or the machine too busy, to tell levels apart; a level may then be in two sets.
struct MemoryLevels {
  std::array<uint32_t, ASSAY_UPCALL_LEVELS> limits{}, sets{};
};

MemoryLevels memory_levels();

// As the system says by a name of sysconf(), such as _SC_LEVEL2_CACHE_SIZE.
size_t cache_bytes(int name, size_t otherwise);

} // namespace values
