#include "base/fail.h"
#include "base/mapped_file.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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
