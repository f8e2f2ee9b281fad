// Where files of ours may be that nobody needs afterwards.
#pragma once

#include <filesystem>
#include <string>

namespace cli {

// TMPDIR, or /tmp. Throws Failure if it is none.
std::filesystem::path folder_for_temporary_files();

// A folder there that nobody else may write to, which is removed with all that it holds.
class TemporaryFolder {
public:
  explicit TemporaryFolder(const std::string &name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  const std::filesystem::path &path() const { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace cli
