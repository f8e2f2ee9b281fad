// Executables and libraries as they were in a run, beside its profiles: names of code are there after the program was
// built again (docs/decisions/049).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace profile {

struct Profile;

// Where the file with a build id stands that a run's folder keeps: `.build-id/ab/cdef…`, as
// debuggers lay out such folders.
std::filesystem::path kept_file(const std::filesystem::path &run_folder,
                                const std::vector<uint8_t> &build_id);

// Tells the modules of a profile which of their files are kept in its folder.
void find_kept_files(Profile &profile, const std::filesystem::path &run_folder);

} // namespace profile
