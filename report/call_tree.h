// The call tree of `assay heap --tree`, as indented text and as JSON.
#pragma once

#include "analyze/call_tree.h"
#include "report/json.h"
#include "report/table.h"

#include <string>

namespace report {

// Under its question. A function that has all of its caller's amount keeps the caller's level.
std::string tree_text(const analyze::CallTree &tree, const analyze::HeapResult &result,
                      const Style &style);

// Where it is not known who held the memory at the peak, these amounts are null.
Json tree_json(const analyze::CallTree &tree, bool peak_is_divided);

} // namespace report
