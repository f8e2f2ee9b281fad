// The answer of `assay workingset`, as text for people and as JSON for programs.
#pragma once

#include "analyze/working_set.h"
#include "report/json.h"
#include "report/table.h"

namespace report {

// `top` rows of each table.
std::string working_set_text(const analyze::WorkingSetResult &result, unsigned top,
                             const Style &style);

// The document assay.workingset/1. `top` limits the owners of each snapshot and phase; 0 means all.
Json working_set_document(const analyze::WorkingSetResult &result, unsigned top);

} // namespace report
