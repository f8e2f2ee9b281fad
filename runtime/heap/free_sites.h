// Where the objects of a context are freed, with the option free_stacks=1: how many objects and
// bytes for each pair of allocation context and free context.
#pragma once

#include <stdint.h>

#include "runtime/core/ids.h"

namespace assay::heap {

bool create_free_sites();

// Counts one object. Thread-safe.
void add_free_site(ContextId context, ContextId free_context, uint64_t bytes);

// Writes what was counted since the last time.
void write_free_sites();

// Leaves out what was counted since then.
void clear_free_sites();

// In the child of a fork: nothing was counted, nobody holds a lock.
void reset_free_sites_in_child();

} // namespace assay::heap
