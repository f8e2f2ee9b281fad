// Whose is a line? The context of the newest allocation that covers it: noted when memory is allocated,
// so that a snapshot asks by one load, and memory that was freed meanwhile still has its owner.
//
// Large objects are noted by pages of 4 KiB and spans of 1 MiB, so that an object of a terabyte costs a
// few megabytes and one of a few bytes a store.
#pragma once

#include <stdint.h>

#include "runtime/core/ids.h"

namespace assay::workingset {

// False when there is no memory.
bool create_owners();
void own(const void *block, uint64_t bytes, ContextId context);
void reset_owners_in_child(); // in the child of a fork

// A run of 64-byte blocks with one owner.
struct OwnedRun {
  uint64_t first, count; // block numbers: address / 64
  ContextId context;
};

// Has the owner of the block that holds this address changed since it was last asked here? Then the run
// around it whose owner changed with it.
bool take_new_owner(uint64_t address, OwnedRun &run);

} // namespace assay::workingset
