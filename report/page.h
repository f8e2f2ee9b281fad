// A JSON document as an HTML page: one file, opened from disk, without a network.
#pragma once

#include <span>
#include <string>

#include "report/document.h"

namespace report {

// The page that web/ builds, with the document in it. The data are those of the JSON document, as
// tables (node_table.h), deflated and in base64. If there are `programs`, they are a last key of
// that name. Throws Failure where this build has no zlib.
std::string html_page(const Document &document, std::span<const Document> programs = {});
std::string html_page(const Json &document);

} // namespace report
