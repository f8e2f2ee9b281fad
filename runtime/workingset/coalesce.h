// Keeps the number of snapshots bounded: two neighbours become one, whose lines are those of either.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/core/file/profile_file.h"

namespace assay::workingset {

// A ProfileFile::Rewrite: snapshots of half as many ticks as the finest (see set_coalesced_ticks) are joined by
// pairs; all other records stay.
bool coalesce_snapshots(const uint8_t *from, size_t size, ProfileFile &to);

// Ticks of a snapshot after joining; a power of two.
void set_coalesced_ticks(uint64_t ticks);

} // namespace assay::workingset
