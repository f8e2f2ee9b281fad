#include "profile/find_profiles.h"

#include "abi/container.h"
#include "base/fail.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

namespace {

class FindProfiles : public testing::Test {
protected:
  std::string file(const std::string &name) {
    fs::path path = fs::path(folder_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    return path.string();
  }
  TemporaryFolder temporary_;
  const std::string &folder_ = temporary_.path();
};

TEST_F(FindProfiles, TakesTheLatestRunThatHasAProfile) {
  file("20250101-000000-app.1/app.1.assay");
  std::string latest = file("20250102-000000-app.2/app.2.assay");
  file("20250103-000000-app.3/app.3.live");
  EXPECT_EQ(profile::find_profiles({folder_}), Names{latest});
}

// Its profile says when it was.
TEST_F(FindProfiles, AFolderOfAnotherNameIsAsLateAsItsProfileSays) {
  std::string named = file("base/app.1.assay"), usual = file("20250102-000000-app.2/app.2.assay");
  for (const uint64_t seconds : {1735689600U, 1735862400U}) { // 2025-01-01, and -03
    AssayFileHeader header = {};
    header.start_unix_ns = seconds * 1'000'000'000;
    std::ofstream(named).write(reinterpret_cast<const char *>(&header), sizeof header);
    EXPECT_EQ(profile::find_profiles({folder_}), Names{seconds == 1735689600U ? usual : named});
  }
}

TEST_F(FindProfiles, ARunIncludesItsChildren) {
  std::string parent = file("20250101-000000-app.1/app.1.assay");
  std::string child = file("20250101-000000-app.1/app.2.assay");
  std::string nested = file("20250101-000000-app.1/20250101-000001-tool.3/tool.3.assay");
  Names all = {nested, parent, child};
  std::sort(all.begin(), all.end());
  EXPECT_EQ(profile::find_profiles({folder_ + "/20250101-000000-app.1"}), all);
  EXPECT_EQ(profile::find_profiles({folder_}), all);
}

TEST_F(FindProfiles, TimesOfRunsAreInUtc) {
  EXPECT_EQ(profile::run_time_text(0), "19700101-000000");
  EXPECT_EQ(profile::run_time_text(951782399), "20000228-235959");
}

TEST_F(FindProfiles, AFileIsTakenOnceHoweverOftenItIsNamed) {
  std::string one = file("x.assay");
  EXPECT_EQ(profile::find_profiles({one, one}), Names{one});
}

TEST_F(FindProfiles, SaysWhenThereIsNothing) {
  try {
    profile::find_profiles({folder_});
    FAIL();
  } catch (const base::Failure &failure) {
    EXPECT_EQ(failure.what(), "no profile found in " + folder_ +
                                  "; make one with `assay run -- ./app` (built with assay-cc) or "
                                  "`assay values record -- ./app`, or name one");
  }
}

} // namespace
