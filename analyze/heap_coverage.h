// What the rows of `assay heap` were made from: the runs, how they counted, and what they could not see.
#pragma once

#include "analyze/heap.h"

namespace analyze {

// Processes, times, losses, modules, and how accesses were counted. Before there are rows.
void describe_run(HeapResult &result, const profile::Profile &profile);

// Which of the rows have counted accesses, and which modules own those that have not.
void describe_coverage(HeapResult &result, const profile::Profile &profile);

// Which modules have no names of functions.
void describe_names(HeapResult &result, const profile::Profile &profile);

} // namespace analyze
