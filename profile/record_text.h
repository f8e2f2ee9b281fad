// Records as text, for people: `assay dump`, and the tables of docs/format.md. Both come from
// abi/records.def alone.
#pragma once

#include "profile/container.h"

#include <string>

namespace profile {

// One line: "@OFFSET Name field=value … tail=…". A record of an unknown kind or with impossible
// contents is a line as well. Frames of a context are left out unless `with_stacks`. Bytes that are
// not printable ASCII are escaped (\x1b).
std::string record_text(const RecordView &record, bool with_stacks);

// The file header as one line.
std::string header_text(const AssayFileHeader &header);

// The tables of docs/format.md in Markdown: every record, its number, its fields and their offsets;
// the heap info block; the losses.
std::string format_tables();

// What stands between these lines in docs/format.md is the output of format_tables().
extern const char *const kFormatTablesBegin;
extern const char *const kFormatTablesEnd;

// `text` with everything that is not printable ASCII escaped.
std::string escaped(std::string_view text);

} // namespace profile
