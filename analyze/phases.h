// Which stretches of a run work on the same things?
#pragma once

#include "analyze/workingset.h"

namespace analyze {

// Splits the snapshots into phases; only first and last are filled in. A phase is a stretch in which
// the lines of each owner stay about the same: a snapshot belongs to the phase before it when the two
// share at least half of their lines by owner.
std::vector<Phase> find_phases(const std::vector<SnapshotRow> &snapshots);

} // namespace analyze
