#include "profile/find_profiles.h"

#include "abi/container.h"
#include "base/fail.h"
#include "tests/unit/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

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
  std::string failure() {
    try {
      profile::find_profiles({folder_});
    } catch (const base::Failure &failure) {
      return failure.what();
    }
    return "";
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

// What lies deeper is of other runs, which do not add up.
TEST_F(FindProfiles, FoldersFurtherBelowAreNotSearched) {
  file("work/assay.out/20250101-000000-app.1/app.1.assay");
  const std::string way = "no profile found in " + folder_ +
                          ", nor in the folders in it; folders further below are not searched: ";
  EXPECT_EQ(failure().find(way), 0u) << failure();
  const std::string own = file("own.assay");
  EXPECT_EQ(profile::find_profiles({folder_}), Names{own});
  const std::string direct = file("work/one.assay");
  fs::remove(own);
  EXPECT_EQ(profile::find_profiles({folder_}), Names{direct});
}

// Root may read everything, so it looks as somebody else.
class AsNobody {
public:
  AsNobody() {
    if (getuid() == 0)
      EXPECT_EQ(seteuid(kNobody), 0);
  }
  ~AsNobody() {
    if (getuid() == 0)
      EXPECT_EQ(seteuid(0), 0);
  }

private:
  static constexpr uid_t kNobody = 65534;
};

TEST_F(FindProfiles, FoldersThatMayNotBeReadAreNoRuns) {
  const std::string one = file("app/app.1.assay");
  using enum fs::perms;
  fs::permissions(folder_, owner_all | group_read | group_exec | others_read | others_exec);
  for (const char *name : {"/others", "/20990101-000000-app.1"}) {
    fs::create_directory(folder_ + name);
    fs::permissions(folder_ + name, fs::perms::none);
    {
      AsNobody nobody;
      if (name[1] == 'o')
        EXPECT_EQ(profile::find_profiles({folder_}), Names{one});
      else
        EXPECT_NE(failure().find("this folder cannot be read"), std::string::npos);
    }
    fs::permissions(folder_ + name, fs::perms::owner_all);
  }
}

TEST_F(FindProfiles, ATraceIsNamedAsOne) {
  AssayFileHeader header = {};
  header.kind = ASSAY_FILE_TRACE;
  std::ofstream(file("20250101-000000-app.1/trace.assay"))
      .write(reinterpret_cast<const char *>(&header), sizeof header);
  EXPECT_FALSE(profile::has_profile(folder_));
  EXPECT_EQ(failure().find("no profile found in " + folder_ +
                           ", which holds a trace: `assay trace info " + folder_ + "` reads it; "),
            0u)
      << failure();
  file("20250102-000000-app.1/app.1.assay");
  EXPECT_TRUE(profile::has_profile(folder_));
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
