#include "base/fail.h"
#include "base/mapped_file.h"
#include "tests/unit/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <unistd.h>

namespace {

std::string message_of(const std::string &path) {
  try {
    base::MappedFile file(path);
  } catch (const base::Failure &failure) {
    return failure.what();
  }
  return "";
}

TEST(MappedFile, MapsTheWholeFile) {
  TemporaryFolder folder;
  std::string path = folder.in("whole");
  std::ofstream(path) << "hello";
  base::MappedFile file(path);
  ASSERT_EQ(file.bytes().size(), 5u);
  EXPECT_EQ(static_cast<char>(file.bytes()[4]), 'o');
}

// In bytes, of the pages that are in memory.
size_t resident(std::span<const std::byte> bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::ifstream maps("/proc/self/smaps");
  const std::string begin =
      fmt::format("{:x}-", reinterpret_cast<uintptr_t>(bytes.data()) & ~(page - 1));
  std::string line;
  while (std::getline(maps, line) && !line.starts_with(begin)) {
  }
  while (std::getline(maps, line) && !line.starts_with("Rss:")) {
  }
  return std::stoul(line.substr(4)) << 10;
}

TEST(MappedFile, PagesThatAreReleasedAreReadAgain) {
  TemporaryFolder folder;
  std::string path = folder.in("large");
  std::ofstream(path) << std::string(1 << 20, 'a') << "end";
  base::MappedFile file(path);
  auto read_all = [&] {
    return std::count(file.bytes().begin(), file.bytes().end(), std::byte{'a'});
  };
  EXPECT_EQ(read_all(), 1 << 20);
  EXPECT_GE(resident(file.bytes()), size_t{1} << 20);
  file.release_pages();
  EXPECT_EQ(resident(file.bytes()), 0u);
  EXPECT_EQ(read_all(), 1 << 20);
}

// As a program is that is sampled while another one is copied over it.
TEST(MappedFile, WhatIsGoneReadsAsZeros) {
  const std::string path = testing::TempDir() + "assay_mapped_file_shrinks";
  std::ofstream(path) << std::string(10'000, 'a');
  base::MappedFile file(path);
  EXPECT_EQ(file.bytes()[9'000], std::byte{'a'});
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  EXPECT_EQ(file.bytes()[9'999], std::byte{0});
  EXPECT_EQ(file.bytes()[0], std::byte{0});
  base::MappedFile moved(std::move(file)); // still watched
  EXPECT_EQ(moved.bytes()[5'000], std::byte{0});
  unlink(path.c_str());
}

TEST(MappedFile, SaysWhatIsWrong) {
  TemporaryFolder folder;
  std::string empty = folder.in("empty");
  std::ofstream(empty).flush();
  EXPECT_EQ(message_of("/nowhere/x"), "/nowhere/x: there is no such file; check the name");
  EXPECT_EQ(message_of("/"), "/: it is a directory; name a file in it");
  EXPECT_EQ(message_of(empty), empty + ": it is empty; nothing was written to it");
  EXPECT_EQ(message_of("/dev/null"), "/dev/null: it is not a regular file; copy it into one first");
  if (geteuid() != 0) { // root may read everything
    std::string secret = folder.in("secret");
    std::ofstream(secret) << "x";
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    EXPECT_NE(message_of(secret).find("it may not be read"), std::string::npos);
  }
}

} // namespace
