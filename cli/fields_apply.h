// `assay fields apply`: the order of members that the report advises, in the sources.
#pragma once

#include "cli/command.h"

namespace cli {

// Declares the subcommand on `assay fields`.
Action define_fields_apply(CommandLine line);

} // namespace cli
