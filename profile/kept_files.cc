#include "profile/kept_files.h"

#include "profile/profile.h"

#include <fmt/format.h>

namespace profile {

namespace fs = std::filesystem;

fs::path kept_file(const fs::path &run_folder, const std::vector<uint8_t> &build_id) {
  std::string text;
  for (uint8_t byte : build_id)
    text += fmt::format("{:02x}{}", byte, text.empty() ? "/" : "");
  return run_folder / ".build-id" / text;
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
