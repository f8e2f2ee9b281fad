// The answer of `assay workingset`, as text for people and as JSON for programs.
#pragma once

#include "analyze/workingset.h"
#include "report/json.h"
#include "report/table.h"

#include <string>
#include <vector>

namespace report {

// Of a phase's function in a table: who fills the phase needs room behind it.
inline constexpr unsigned kPhaseFunctionColumns = 24;

struct WorkingSetTextOptions {
  unsigned top = 10; // rows of each table
  std::string sort;  // only the owners, in this order (analyze::owner_order); empty: every question
};

std::string workingset_text(const analyze::WorkingSetResult &result,
                            const WorkingSetTextOptions &options, const Style &style);

// Of several processes. Of more than a few, a table of `top` of them with their sums, and the text of
// the largest.
std::string workingsets_text(const std::vector<analyze::WorkingSetResult> &results,
                             const WorkingSetTextOptions &options, const Style &style);

// The document assay.workingset/1. `top` limits the owners, also those of each snapshot and phase; 0
// means all.
Json workingset_document(const analyze::WorkingSetResult &result, unsigned top);

} // namespace report
