// Which files a PROFILE argument means.
#pragma once

#include <ctime>
#include <string>
#include <vector>

namespace profile {

// Where profiles are looked for when none is named: the default of the run-time option `dir`.
extern const char *const kDefaultFolder;

// Each argument is a .assay file, a run's folder (*.assay lie directly in it, children of the run included),
// or a folder of run folders, of which the latest is taken: their names begin with the time. Folders further below are
// not searched.
// Without arguments, the latest run in kDefaultFolder. Sorted, without duplicates, never empty:
// throws Failure when there is nothing.
std::vector<std::string> find_profiles(const std::vector<std::string> &arguments);

// The time with which names of runs' folders begin, as the runtime writes it: YYYYMMDD-HHMMSS, in UTC.
std::string run_time_text(std::time_t time);

// Whether find_profiles() would find one in this folder.
bool has_profile(const std::string &folder);

// The profiles in a folder that a run has just made, and in all folders below; empty if there are none.
std::vector<std::string> profiles_in_run(const std::string &folder);

} // namespace profile
