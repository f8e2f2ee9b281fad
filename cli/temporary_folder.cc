#include "cli/temporary_folder.h"

#include "base/fail.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace cli {

std::filesystem::path folder_for_temporary_files() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) {
    const char *named = std::getenv("TMPDIR");
    base::fail("TMPDIR={}: temporary files cannot be made there: {}; name another folder",
               named ? named : "", error.message());
  }
  return folder;
}

TemporaryFolder::TemporaryFolder(const std::string &name) {
  std::string path = folder_for_temporary_files() / (name + ".XXXXXX");
  if (!mkdtemp(path.data()))
    base::fail("{}: the folder for temporary files cannot be made: {}; set TMPDIR to another place",
               path, std::strerror(errno));
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

} // namespace cli
