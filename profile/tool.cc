#include "profile/tool.h"

namespace profile {

#define ASSAY_TOOL(name, bit, is_default, question) extern const ToolRecords name##_records;
#define ASSAY_OUTSIDE_TOOL(name, bit, question) extern const ToolRecords name##_records;
#include "abi/tools.def"

const std::vector<const ToolRecords *> &tool_records() {
  static const std::vector<const ToolRecords *> all = {
#define ASSAY_TOOL(name, bit, is_default, question) &name##_records,
#define ASSAY_OUTSIDE_TOOL(name, bit, question) &name##_records,
#include "abi/tools.def"
  };
  return all;
}

} // namespace profile
