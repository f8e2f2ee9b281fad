// What two recordings of values differ in, for `assay diff`.
#pragma once

#include "analyze/values_diff.h"
#include "report/document.h"
#include "report/table.h"

#include <string>

namespace report {

// `top` rows of each table; 0: all in JSON, 12 in text.
Json values_diff_json(const analyze::ValuesDiff &diff, unsigned top);
std::string values_diff_text(const analyze::ValuesDiff &diff, unsigned top, const Style &style);

} // namespace report
