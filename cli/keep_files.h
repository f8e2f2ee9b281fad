#pragma once

#include "profile/profile.h"

#include <filesystem>

namespace cli {

// Keeps the files of a run's modules in its folder, but for those of the system, as other names of them (hard links,
// profile/kept_files.h). What cannot be linked, has no build id, or is another file by now is left out.
void keep_files(const profile::Profile &profile, const std::filesystem::path &run_folder);

} // namespace cli
