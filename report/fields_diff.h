// What changed between the fields of two runs, as text and JSON. `top` limits the rows; 0: all.
#pragma once

#include "analyze/fields_diff.h"
#include "report/json.h"
#include "report/table.h"

namespace report {

std::string diff_text(const analyze::FieldsDiff &diff, unsigned top, const Style &style);
Json diff_json(const analyze::FieldsDiff &diff, unsigned top);

} // namespace report
