// `assay fields apply`: the order of members that the report advises, in the sources.
#pragma once

#include "cli/command.h"

#include <string>
#include <vector>

namespace cli {

// Declares the subcommand on `assay fields`, whose profiles it takes if it is given none itself.
Action define_fields_apply(CommandLine line, const std::vector<std::string> &profiles);

} // namespace cli
