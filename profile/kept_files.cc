// A link takes no time and no space, and stays what it was when a linker writes a new file in the place of the old one,
// as linkers do. Where something overwrites the file itself, its build id tells, and nothing is lost but the names.

#include "profile/kept_files.h"

#include "profile/profile.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

namespace profile {

namespace fs = std::filesystem;

// What a package manager puts there is not built again.
static bool is_of_system(const std::string &path) {
  constexpr std::array<std::string_view, 5> kFolders = {"/usr/", "/lib", "/bin/", "/sbin/",
                                                        "/nix/"};
  return !path.starts_with('/') || (!path.starts_with("/usr/local/") &&
                                    std::ranges::any_of(kFolders, [&](std::string_view folder) {
                                      return path.starts_with(folder);
                                    }));
}

fs::path kept_file(const fs::path &run_folder, const std::vector<uint8_t> &build_id) {
  std::string text;
  for (uint8_t byte : build_id)
    text += fmt::format("{:02x}{}", byte, text.empty() ? "/" : "");
  return run_folder / ".build-id" / text;
}

void keep_files(const Profile &profile, const fs::path &run_folder) {
  for (const Module &module : profile.modules) {
    if (module.build_id.size() < 2 || is_of_system(module.path))
      continue;
    const fs::path kept = kept_file(run_folder, module.build_id);
    std::error_code ignored;
    fs::create_directories(kept.parent_path(), ignored);
    fs::create_hard_link(module.path, kept, ignored);
  }
}

void find_kept_files(Profile &profile, const fs::path &run_folder) {
  std::error_code ignored;
  if (!fs::is_directory(run_folder / ".build-id", ignored))
    return;
  for (Module &module : profile.modules)
    if (module.build_id.size() >= 2)
      if (fs::path kept = kept_file(run_folder, module.build_id); fs::exists(kept, ignored))
        module.kept = fs::absolute(kept, ignored).string();
}

} // namespace profile
