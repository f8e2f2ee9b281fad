// Globals and stacks of `assay heap`, as text and as JSON.
#pragma once

#include "analyze/heap.h"
#include "report/json.h"
#include "report/table.h"

#include <string>

namespace report {

// The tables, each under its question; nothing where nothing was recorded. At most `top` globals; 0
// means all.
std::string non_heap_text(const analyze::HeapResult &result, unsigned top, const Style &style);

Json globals_json(const analyze::HeapResult &result);
Json stacks_json(const analyze::HeapResult &result);

} // namespace report
