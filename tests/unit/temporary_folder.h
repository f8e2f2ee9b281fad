// A folder of its own for a test, whatever else runs at the same time; removed with what is in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

class TemporaryFolder {
public:
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / "assay-test.XXXXXX").string()) {
    if (!mkdtemp(path_.data()))
      throw std::runtime_error(path_ + ": the folder cannot be made");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::string &path() const { return path_; }
  std::string in(const std::string &name) const { return path_ + "/" + name; }

private:
  std::string path_;
};
