// The answers of `assay values`.
#pragma once

#include "analyze/values.h"
#include "report/document.h"
#include "report/table.h"

#include <string>

namespace report {

// What to change, where time goes, and the instructions whose values are hot; `top` rows of each,
// 0: as many as are worth a screen.
std::string values_text(const analyze::ValuesResult &result, unsigned top, const Style &style);

// The instructions of functions, with samples and values: all functions of the result, `top` at most.
std::string annotated_text(const analyze::ValuesResult &result, unsigned top, const Style &style);

// Stores and loads that stand in each other's way.
std::string conflicts_text(const analyze::ValuesResult &result, unsigned top, const Style &style);

Document values_document(const analyze::ValuesResult &result, unsigned top);
Json values_json(const analyze::ValuesResult &result, unsigned top);

// A value of a list as people read it: "7", "0x3c8", "yes", "sort+0x12", of strides "+64".
std::string value_text(const analyze::ValueShare &share, const analyze::ValueList &list,
                       bool is_stride);

// "rax: 98.9 % 0xff, 0.5 % 0x0" of a list; empty if it has no hot value.
std::string hot_text(const analyze::ValueList &list, size_t most);

} // namespace report
