// Live bytes over time, and where in it the program said where it was.
#pragma once

#include "analyze/heap.h"
#include "report/json.h"

#include <string>

namespace report {

// Lines for the head of the report, each indented by two columns; empty where there is nothing to
// show. The curve only of a single process: several have no clock in common.
std::string timeline_text(const analyze::HeapResult &result);

Json timeline_json(const std::vector<profile::Process> &processes);
Json marks_json(const std::vector<profile::Process> &processes);

} // namespace report
