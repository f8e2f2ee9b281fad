// `assay values record`: of the command `values` alone.
#pragma once

#include "cli/command.h"
#include "cli/values_settings.h"

#include <csignal>

namespace cli {

// From the first SIGINT or SIGTERM on `asked_to_stop` is set.
extern volatile std::sig_atomic_t asked_to_stop;
void stop_when_asked();

// `assay values record -a --daemon`: records until it is asked to stop. The status.
int record_as_daemon(const RecordArguments &arguments);

Action define_values_record(CommandLine line);

} // namespace cli
