// The answer of `assay report`, as text for people and as JSON for programs.
#pragma once

#include "analyze/joined.h"
#include "report/document.h"
#include "report/table.h"

#include <string>

namespace report {

struct JoinedTextOptions {
  unsigned top = 5; // findings, phases, rows of each table
  std::string sort; // only types and sites, in this order (analyze::joined_order)
};

std::string joined_text(const analyze::JoinedResult &result, const JoinedTextOptions &options,
                        const Style &style);

// The document assay.report/1. `top` limits types, sites, and owners of phases; 0 means all. It is
// made from the result, which must live as long, with what that refers to.
Document joined_document(const analyze::JoinedResult &result, unsigned top);

// How a tool that was not recorded is recorded.
std::string recording_command(const analyze::JoinedResult &result, const analyze::ToolState &tool);

} // namespace report
