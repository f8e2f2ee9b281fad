// What lies where, for lines that no allocation owns: mapped files, stacks, the heap of brk.
#pragma once

#include <stdint.h>

namespace assay::workingset {

// Writes the map of the process if it has changed since the last time, as of this tick.
void write_regions(uint64_t tick);

void reset_regions_in_child(); // in the child of a fork

} // namespace assay::workingset
