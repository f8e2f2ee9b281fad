// What a command is: a function that declares what it may be given and returns what to do once that
// is parsed. The action returns the exit status: 0 done, 1 the answer is no; failures are thrown as
// base::Failure and become 2 in main.
#pragma once

#include "cli/command_line.h"

#include <functional>

namespace cli {

using Action = std::function<int(const Words &after_dashes)>;

#define ASSAY_COMMAND(name, help) Action define_##name(CommandLine line);
#include "cli/commands.def"

} // namespace cli
