// The working set's part of the answer of `assay diff`, as text and as JSON.
#pragma once

#include "analyze/workingset_diff.h"
#include "report/json.h"
#include "report/table.h"

#include <string>

namespace report {

// At most `top` rows; 0 means all.
std::string diff_text(const analyze::WorkingSetDiff &diff, unsigned top, const Style &style);

// The value of the key `workingset` in assay.diff/1.
Json diff_json(const analyze::WorkingSetDiff &diff, unsigned top);

} // namespace report
