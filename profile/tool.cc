#include "profile/tool.h"

namespace profile {

#define ASSAY_TOOL(name, bit, is_default, question) extern const ToolRecords name##_records;
#define ASSAY_OUTSIDE_TOOL(name, bit, question) extern const ToolRecords name##_records;
#include "abi/tools.def"

// Assembler::sums() and others find a tool's by its bit.
constexpr bool lines_are_in_order_of_bits() {
  int next = 0;
#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  if (bit != next++)                                                                               \
    return false;
#define ASSAY_OUTSIDE_TOOL(name, bit, question)                                                    \
  if (bit != next++)                                                                               \
    return false;
#include "abi/tools.def"
  return true;
}
static_assert(lines_are_in_order_of_bits(),
              "abi/tools.def: the bits are 0, 1, 2, …: a new tool is the last line");

const std::vector<const ToolRecords *> &tool_records() {
  static const std::vector<const ToolRecords *> all = {
#define ASSAY_TOOL(name, bit, is_default, question) &name##_records,
#define ASSAY_OUTSIDE_TOOL(name, bit, question) &name##_records,
#include "abi/tools.def"
  };
  return all;
}

uint64_t tools_that_follow_objects() {
  uint64_t bits = 0;
  for (size_t bit = 0; bit < tool_records().size(); bit++)
    bits |= uint64_t{tool_records()[bit]->follows_objects} << bit;
  return bits;
}

} // namespace profile
