// Accesses to memory that is not the heap's: globals and stacks, where the program was built to count
// them (-fassay-heap=globals,stack). Nothing is kept for them but the counters.
#pragma once

#include <stdint.h>

#include "runtime/core/ids.h"

namespace assay::heap {

// Watches their counters for wrapping, at each walk.
void watch_non_heap();

// Writes the counts of every block that was accessed, as of this walk.
void write_non_heap(uint64_t walk);

void zero_non_heap();

// The globals of a module that is gone: what was counted is written, for good.
void end_globals(ModuleId module);

} // namespace assay::heap
