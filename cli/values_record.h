// `assay values record`: of the command `values` alone.
#pragma once

#include "cli/command.h"

namespace cli {

Action define_values_record(CLI::App &app);

} // namespace cli
