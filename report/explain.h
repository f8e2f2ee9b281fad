// The answer of `assay explain`, as text for people and as JSON for programs.
#pragma once

#include "analyze/explain.h"
#include "report/document.h"
#include "report/table.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace report {

// An order of functions; ties stand by address.
struct FunctionOrder {
  const char *key;
  const char *question;
};
std::span<const FunctionOrder> function_orders();
// Of --sort; the first one for an empty key. Throws Failure for a key that is none.
const FunctionOrder &function_order(const std::string &key);

struct FunctionQuery {
  std::string sort;   // a key of function_orders()
  std::string filter; // a regular expression on names and linkage names; empty: all
};

struct SelectedFunctions {
  std::vector<const analyze::ExplainedFunction *> functions; // in the order that was asked for
  uint64_t filtered_out = 0;
};
// Throws Failure for a key or a regular expression that is none.
SelectedFunctions selected_functions(const analyze::Explanation &explanation,
                                     const FunctionQuery &query);

struct ExplainTextOptions {
  FunctionQuery query;
  unsigned top = 20; // rows of each table
  size_t lines = 0;  // functions, in the order of the table, whose instructions stand below it
};

// A whole executable: the summary, a table of functions, those that are not understood.
std::string explain_text(const analyze::Explanation &explanation, const ExplainTextOptions &options,
                         const Style &style);

// One function: its instructions, and beside each what was understood of it. `path` is the
// executable's, or empty if the text around it has said so.
std::string explained_function_text(const analyze::ExplainedFunction &function,
                                    const std::string &path, const Style &style);

// The document assay.explain/1. `top` limits the functions, 0 means all; `accesses` adds what is known
// of each access, branch and definition. The explanation must outlive the document.
Document explain_document(const analyze::Explanation &explanation, const FunctionQuery &query,
                          unsigned top, bool accesses);

} // namespace report
