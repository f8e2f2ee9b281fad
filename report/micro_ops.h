// The tables of docs/micro-ops.md: every micro-op of abi/uops.def.
#pragma once

#include <string>

namespace report {

// In Markdown, a table for each group: name, operands, what it yields as C, what that means.
std::string micro_op_tables();

// What stands between these lines in docs/micro-ops.md is the output of micro_op_tables().
extern const char *const kMicroOpTablesBegin;
extern const char *const kMicroOpTablesEnd;

} // namespace report
