// Parts that the text reports share.
#pragma once

#include "analyze/finding.h"
#include "profile/profile.h"
#include "report/table.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace report {

// "/bin/app --fast": what was run, as it may be printed; cut in the middle where it is very long.
std::string command_text(const profile::Process &process);
std::string command_text(const std::vector<std::string> &words);

// The same of a sum: of several programs (analyze::program_names), which they are.
std::string command_text(const profile::Process &process, const std::vector<std::string> &programs);

// What to change, the first `top` findings under their question; empty without findings.
std::string findings_text(const std::vector<analyze::Finding> &findings, size_t top,
                          const Style &style);

// The line below a table of which so many rows are not shown; empty for none.
// "3 more; OPTION shows them", and a line of its own that says --json; empty if nothing is left.
std::string more(size_t left, std::string_view option);
std::string more_text(size_t left, const Style &style);

// The line of a loss that happened so many times: what happened and what to do; `names` says to whom.
std::string loss_text(uint32_t kind, uint64_t times, const std::string &names = "");

// A line for each of the losses.
std::string losses_text(const std::map<uint32_t, uint64_t> &losses);

// That the accesses of some modules are not counted; empty where all are.
std::string uncounted_modules_text(uint64_t measured, uint64_t all);

} // namespace report
