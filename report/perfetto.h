// A profile over time, for ui.perfetto.dev and other viewers of trace events.
//
// The form is the JSON object of the "Trace Event Format" (Google, the document that trace viewers cite):
// counter events `C`, complete events `X` for phases, instant events `i` for marks, metadata `M` for names.
// Times are microseconds of the wall clock since the first process began.
#pragma once

#include "analyze/workingset.h"
#include "report/json.h"

#include <vector>

namespace report {

// `sets` are those of the profile's processes (analyze::workingsets). Of each the `top` owners get a track
// of their own, in the order of their rows; the rest share one.
Json perfetto_trace(const profile::Profile &profile,
                    const std::vector<analyze::WorkingSetResult> &sets, unsigned top);

} // namespace report
