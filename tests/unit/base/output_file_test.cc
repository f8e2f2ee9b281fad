// What takes the place of a file keeps its mode; what fails leaves it as it was.
#include "base/output_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace base {
namespace {

namespace fs = std::filesystem;

class OutputFiles : public testing::Test {
protected:
  OutputFiles() {
    char name[] = "/tmp/assay-output-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~OutputFiles() override { fs::remove_all(folder_); }

  std::string make(const char *name, fs::perms mode) const {
    const fs::path path = folder_ / name;
    std::ofstream(path) << "old";
    fs::permissions(path, mode);
    return path.string();
  }
  static fs::perms mode_of(const std::string &path) { return fs::status(path).permissions(); }
  static std::string text_of(const std::string &path) {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  static void write(const std::string &path, bool commits) {
    OutputFile file(path);
    file.write(std::as_bytes(std::span("new", 3)));
    if (commits)
      file.commit();
  }

  fs::path folder_;
};

TEST_F(OutputFiles, ModesStay) {
  const mode_t mask = umask(022);
  for (const auto mode : {fs::perms{0600}, fs::perms{0640}, fs::perms{0755}, fs::perms{0666}}) {
    const std::string path = make("file", mode);
    write(path, true);
    EXPECT_EQ(text_of(path), "new");
    EXPECT_EQ(mode_of(path), mode);
    fs::remove(path);
  }
  const std::string fresh = (folder_ / "fresh").string();
  write(fresh, true);
  EXPECT_EQ(mode_of(fresh), fs::perms{0644});
  umask(mask);
}

TEST_F(OutputFiles, ALinkStaysOne) {
  const std::string path = make("file", fs::perms{0600}), link = (folder_ / "link").string();
  fs::create_symlink("file", link);
  write(link, true);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(mode_of(path), fs::perms{0600});
}

TEST_F(OutputFiles, WhatIsNotCommittedChangesNothing) {
  const std::string path = make("file", fs::perms{0600});
  write(path, false);
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

} // namespace
} // namespace base
