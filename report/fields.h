// `assay fields` as text and as a document.
#pragma once

#include "analyze/fields.h"
#include "report/json.h"
#include "report/table.h"

namespace report {

// assay.fields/1. `top` limits structs; 0: all.
Json fields_document(const analyze::FieldsResult &result, unsigned top);

struct FieldsTextOptions {
  size_t top = 10;     // rows of the table, and findings
  size_t drawings = 3; // structs that are drawn, byte by byte
  std::string sort;
};
std::string fields_text(const analyze::FieldsResult &result, const FieldsTextOptions &options,
                        const Style &style);

} // namespace report
