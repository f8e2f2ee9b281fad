// What a subcommand is: a function that declares its arguments on a CLI::App and returns what to do
// once they are parsed. The action returns the exit status: 0 done, 1 the answer is no; failures
// are thrown as base::Failure and become 2 in main.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace cli {

// Words after the first `--` are a program's own and are not parsed here.
using Words = std::vector<std::string>;
using Action = std::function<int(const Words &after_dashes)>;

#define ASSAY_COMMAND(name, help) Action define_##name(CLI::App &app);
#include "cli/commands.def"

} // namespace cli
