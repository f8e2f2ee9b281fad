#include "cli/tool.h"

namespace cli {

#define ASSAY_TOOL(name, bit, is_default, question) extern const Tool name##_tool;
#define ASSAY_OUTSIDE_TOOL(name, bit, question) extern const Tool name##_tool;
#include "abi/tools.def"

std::span<const Tool *const> tools() {
  static constexpr const Tool *kTools[] = {
#define ASSAY_TOOL(name, bit, is_default, question) &name##_tool,
#define ASSAY_OUTSIDE_TOOL(name, bit, question) &name##_tool,
#include "abi/tools.def"
  };
  return kTools;
}

} // namespace cli
