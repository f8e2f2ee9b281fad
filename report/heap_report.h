// The answer of `assay heap` as text for people and as JSON for programs; both show the same
// result.
#pragma once

#include "analyze/call_tree.h"
#include "analyze/heap.h"
#include "report/document.h"
#include "report/table.h"

#include <string>

namespace report {

struct HeapTextOptions {
  unsigned top = 5;   // rows of each table
  std::string sort;   // one table in this order (analyze::heap_question); empty: every question
  bool stacks = true; // the call stacks of the rows shown, below the tables
  const analyze::CallTree *tree = nullptr; // in place of tables and stacks
};

std::string heap_text(const analyze::HeapResult &result, const HeapTextOptions &options,
                      const Style &style);

// "210 k allocations of 21.5 MiB in 67.6 ms, peak 20.0 MiB live": of the whole run, whatever the filter.
std::string heap_run_text(const analyze::HeapResult &result);

// "peak 27.7 MiB live": of several processes no sum, as they need not have their peaks at one time.
std::string peak_text(uint64_t bytes, size_t processes);

// The document assay.heap/1. `top` limits the contexts, in the order of `sort`; 0 means all. The key
// `tree` is there if one is given. It is made from the result, which must live as long.
Document heap_document(const analyze::HeapResult &result, unsigned top, const std::string &sort,
                       const analyze::CallTree *tree = nullptr);

// The same as one text.
std::string heap_json(const analyze::HeapResult &result, unsigned top, const std::string &sort,
                      const analyze::CallTree *tree = nullptr);

} // namespace report
