#include "compiler/tool_flags.h"

#include "compiler/words.h"

#include <algorithm>
#include <stdexcept>

namespace assay::compiler {

#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  namespace name {                                                                                 \
  extern const ToolFlags flags;                                                                    \
  }
#include "abi/tools.def"

std::span<const ToolFlags *const> tool_flags() {
  static constexpr const ToolFlags *kTools[] = {
#define ASSAY_TOOL(name, bit, is_default, question) &name::flags,
#include "abi/tools.def"
  };
  return kTools;
}

uint64_t tools_of_alias(std::string_view flag) {
  uint64_t tools = 0;
  for (const ToolFlags *tool : tool_flags())
    if (tool->alias && flag == tool->alias)
      tools |= tool->tool;
  return tools;
}

uint32_t read_tool_mode(const ToolFlags &tool, const std::string &list) {
  const std::string flag = std::string("-fassay-") + tool.name + "=";
  uint32_t mode = 0;
  each_word(list, [&](std::string_view word) {
    auto known = std::find_if(tool.modes.begin(), tool.modes.end(),
                              [&](const ToolMode &each) { return word == each.word; });
    if (known == tool.modes.end()) {
      std::string all;
      for (const ToolMode &each : tool.modes)
        all += std::string(all.empty() ? "" : ", ") + each.word;
      throw std::runtime_error(
          flag + std::string(word) +
          (all.empty() ? ": it has no modes" : ": no such mode; there is " + all));
    }
    mode |= known->bit;
  });
  const ToolMode *chosen = nullptr;
  for (const ToolMode &each : tool.modes) {
    if (!(mode & each.bit & tool.exclusive_bits))
      continue;
    if (chosen)
      throw std::runtime_error(flag + chosen->word + "," + each.word +
                               ": the two exclude each other; choose one");
    chosen = &each;
  }
  return mode;
}

} // namespace assay::compiler
