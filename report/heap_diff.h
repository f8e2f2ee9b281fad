// The answer of `assay diff` as text and as JSON (assay.diff/1).
#pragma once

#include "analyze/heap_diff.h"
#include "report/json.h"
#include "report/table.h"

#include <string>

namespace report {

// At most `top` rows; 0 means all.
std::string diff_text(const analyze::HeapDiff &diff, unsigned top, const Style &style);
Json diff_json(const analyze::HeapDiff &diff, unsigned top);

} // namespace report
