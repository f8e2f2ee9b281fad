// A command that has parts, such as `assay values record` and `assay values report`: one of them must be named.
#pragma once

#include "cli/command.h"

#include <functional>
#include <vector>

namespace cli {

struct CommandPart {
  const char *name, *help;
  std::function<Action(CommandLine)> define;
};

Action define_parts(CommandLine line, const std::vector<CommandPart> &parts);

} // namespace cli
