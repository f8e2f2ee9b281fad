// What the program reported of itself by assay_event, as text and as JSON.
#pragma once

#include "analyze/heap.h"
#include "report/json.h"
#include "report/table.h"

#include <string>

namespace report {

// The table under its question, a row for each name and site; nothing without events. At most `top`
// rows; 0 means all.
std::string events_text(const analyze::HeapResult &result, unsigned top, const Style &style);

// A row for each name and call stack.
Json event_json(const analyze::EventRow &event);

} // namespace report
