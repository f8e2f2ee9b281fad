// Moved code that was kept is that which was made; what is damaged, or others may have written, is
// not there; room is made for new code.

#include "trace/moved_cache.h"

#include "base/mapped_file.h"
#include "image/executable.h"
#include "trace/trace_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace trace {
namespace {

namespace fs = std::filesystem;

constexpr const char *kProgram = "/bin/true";

class MovedCacheTest : public testing::Test {
protected:
  MovedCacheTest() : moved_(move_code(binary::Program{image::Executable(kProgram)}, {})) {}
  ~MovedCacheTest() override { fs::remove_all(folder_); }

  fs::path only_file() const {
    fs::path found;
    for (const auto &entry : fs::directory_iterator(folder_))
      found = entry.path();
    return found;
  }
  static bool is_same(const MovedModule &a, const MovedModule &b) {
    return encode(a.groups) == encode(b.groups) && encode(a.skeletons) == encode(b.skeletons) &&
           encode(a.functions) == encode(b.functions) && a.singles == b.singles && a.file == b.file;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("assay-moved." + std::to_string(getpid()));
  const base::MappedFile program_{kProgram};
  const MovedModule moved_;
};

TEST_F(MovedCacheTest, GivesBackWhatWasKept) {
  ASSERT_FALSE(moved_.file.empty());
  const MovedCache cache(folder_, {});
  EXPECT_FALSE(cache.find(program_.bytes()));
  cache.keep(program_.bytes(), moved_);
  const auto found = cache.find(program_.bytes());
  ASSERT_TRUE(found);
  EXPECT_TRUE(is_same(*found, moved_));
}

TEST_F(MovedCacheTest, TellsContentsAndSettingsApart) {
  const MovedCache cache(folder_, {});
  cache.keep(program_.bytes(), moved_);
  EXPECT_FALSE(cache.find(program_.bytes().first(100)));
  EXPECT_FALSE(
      MovedCache(folder_, {ASSAY_LOG_accesses, true, false, {}, {}}).find(program_.bytes()));
  EXPECT_FALSE(
      MovedCache(folder_, {ASSAY_LOG_groups, false, false, {}, {}}).find(program_.bytes()));
  EXPECT_FALSE(MovedCache(folder_, {ASSAY_LOG_groups, true, true, {}, {}}).find(program_.bytes()));
  EXPECT_FALSE(MovedCache("", {}).find(program_.bytes()));
}

TEST_F(MovedCacheTest, DoesNotFindWhatIsDamaged) {
  const MovedCache cache(folder_, {});
  cache.keep(program_.bytes(), moved_);
  const fs::path file = only_file();
  const base::MappedFile mapped(file.string());
  const std::vector<std::byte> whole(mapped.bytes().begin(), mapped.bytes().end());
  auto is_found = [&](const std::vector<std::byte> &bytes) {
    fs::remove(file);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return cache.find(program_.bytes()).has_value();
  };
  EXPECT_TRUE(is_found(whole));
  for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 300) {
    std::vector<std::byte> changed = whole;
    changed[at] ^= std::byte{0x10};
    EXPECT_FALSE(is_found(changed)) << at;
    EXPECT_FALSE(is_found({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(at)})) << at;
  }
  cache.keep(program_.bytes(), moved_);
  EXPECT_TRUE(cache.find(program_.bytes()));
}

TEST_F(MovedCacheTest, LeavesAloneWhatOthersMayWrite) {
  const MovedCache cache(folder_, {});
  cache.keep(program_.bytes(), moved_);
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
  fs::permissions(only_file(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache.find(program_.bytes()));
  fs::permissions(only_file(), fs::perms::others_write, fs::perm_options::remove);
  EXPECT_TRUE(cache.find(program_.bytes()));
  fs::permissions(folder_, fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(cache.find(program_.bytes()));
}

TEST_F(MovedCacheTest, DoesNotWaitForAPipe) {
  const MovedCache cache(folder_, {});
  cache.keep(program_.bytes(), moved_);
  const fs::path file = only_file();
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(cache.find(program_.bytes()));
}

TEST_F(MovedCacheTest, GivesUpTheLongestUnused) {
  fs::create_directory(folder_);
  fs::permissions(folder_, fs::perms::owner_all);
  const fs::path old = folder_ / "old.moved", other = folder_ / "other.txt";
  for (const fs::path &path : {old, other}) {
    std::ofstream(path, std::ios::binary) << 'x';
    fs::resize_file(path, uintmax_t{600} << 20); // a hole
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const MovedCache cache(folder_, {});
  cache.keep(program_.bytes(), moved_);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(other)); // none of ours
  EXPECT_TRUE(cache.find(program_.bytes()));
}

TEST_F(MovedCacheTest, DoesWithoutAFolder) {
  std::ofstream(folder_) << "a file";
  const MovedCache cache(folder_, {});
  cache.keep(program_.bytes(), moved_);
  EXPECT_FALSE(cache.find(program_.bytes()));
}

} // namespace
} // namespace trace
