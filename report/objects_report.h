// The answer of `assay objects`, as text for people and as JSON for programs.
#pragma once

#include "analyze/objects.h"
#include "report/document.h"
#include "report/json.h"
#include "report/table.h"

#include <string>

namespace report {

struct ObjectsTextOptions {
  unsigned top = 10; // rows of the table
  unsigned maps = 3; // objects that are drawn
  std::string sort;  // analyze::object_order
};

std::string objects_text(const analyze::ObjectsResult &result, const ObjectsTextOptions &options,
                         const Style &style);

// An object as a map of its words: a line of text for each cache line, each word as hot as it is drawn high.
std::string word_map(const analyze::ObjectRow &row, const Style &style);

// The document assay.objects/1. `top` limits the groups; 0 means all. It is made from the result,
// which must live as long.
Document objects_document(const analyze::ObjectsResult &result, unsigned top);
// The same without the frame that documents of all tools have.
Json objects_json(const analyze::ObjectsResult &result, unsigned top);

} // namespace report
