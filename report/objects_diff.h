// The part that `assay objects` has in the answer of `assay diff`, as text and as JSON.
#pragma once

#include "analyze/objects_diff.h"
#include "report/json.h"
#include "report/table.h"

#include <string>

namespace report {

// At most `top` rows; 0 means all.
std::string diff_text(const analyze::ObjectsDiff &diff, unsigned top, const Style &style);

// The value of the key `objects` in assay.diff/1.
Json diff_json(const analyze::ObjectsDiff &diff, unsigned top);

} // namespace report
