// A link takes no time and no space, and stays what it was when a linker writes a new file in the place of the old one,
// as linkers do. Where something overwrites the file itself, its build id tells, and nothing is lost but the names.

#include "cli/keep_files.h"

#include "image/elf.h"
#include "profile/kept_files.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace cli {

namespace fs = std::filesystem;

// What a package manager puts there is not built again.
static bool is_of_system(const std::string &path) {
  constexpr std::array<std::string_view, 8> kFolders = {"/usr/",    "/lib/", "/lib32/", "/lib64/",
                                                        "/libx32/", "/bin/", "/sbin/",  "/nix/"};
  return !path.starts_with('/') || (!path.starts_with("/usr/local/") &&
                                    std::ranges::any_of(kFolders, [&](std::string_view folder) {
                                      return path.starts_with(folder);
                                    }));
}

void keep_files(const profile::Profile &profile, const fs::path &run_folder) {
  for (const profile::Module &module : profile.modules) {
    if (module.build_id.size() < 2 || is_of_system(module.path) ||
        image::check_presence(module.path, module.build_id).presence != image::Presence::same)
      continue;
    const fs::path kept = profile::kept_file(run_folder, module.build_id),
                   folder = kept.parent_path();
    std::error_code error, ignored;
    fs::create_directories(folder, ignored);
    fs::create_hard_link(module.path, kept, error);
    if (error && fs::remove(folder, ignored)) // if it is empty
      fs::remove(folder.parent_path(), ignored);
  }
}

} // namespace cli
