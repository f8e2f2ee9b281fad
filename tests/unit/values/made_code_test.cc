// What processes tell of the code that they make.
#include "values/made_code.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace {

std::string name_at(const values::PerfMap &map, uint64_t address) {
  const auto *function = map.function_at(address);
  return function ? function->name : "";
}

TEST(PerfMap, AFunctionReachesFromItsBeginToItsEnd) {
  values::PerfMap map;
  map.add_line("1000 20 JS:*step loop.js:2:14");
  EXPECT_EQ(name_at(map, 0xfff), "");
  EXPECT_EQ(name_at(map, 0x1000), "JS:*step loop.js:2:14"); // a name has spaces
  EXPECT_EQ(name_at(map, 0x101f), "JS:*step loop.js:2:14");
  EXPECT_EQ(name_at(map, 0x1020), "");
  EXPECT_EQ(map.function_at(0x1010)->begin, 0x1000u);
}

TEST(PerfMap, OfLinesThatOverlapTheLaterHolds) {
  values::PerfMap map;
  map.add_line("1000 100 a");
  map.add_line("1100 100 b");
  map.add_line("1200 100 c");
  map.add_line("10f0 120 d"); // over the end of a, all of b, the begin of c
  EXPECT_EQ(name_at(map, 0x1000), "");
  EXPECT_EQ(name_at(map, 0x10f0), "d");
  EXPECT_EQ(name_at(map, 0x1180), "d");
  EXPECT_EQ(name_at(map, 0x120f), "d");
  EXPECT_EQ(name_at(map, 0x1280), "");
  map.add_line("1000 10 e");
  EXPECT_EQ(name_at(map, 0x1008), "e");
  EXPECT_EQ(name_at(map, 0x10f0), "d");
}

TEST(PerfMap, WhatIsNoLineIsLeftOut) {
  values::PerfMap map;
  for (const char *line :
       {"", "1000", "1000 ", "1000 10", "1000 10 ", "1000 10   ", "nonsense", "1000 0 empty",
        "ffffffffffffffff 10 beyond all addresses", "1000 x name"})
    map.add_line(line);
  EXPECT_EQ(map.function_at(0x1000), nullptr);
  EXPECT_EQ(map.function_at(UINT64_MAX), nullptr);
}

TEST(PerfMap, NamesCanBeShown) {
  values::PerfMap map;
  map.add_line("1000 10 a\x1b[31m\tb");
  EXPECT_EQ(name_at(map, 0x1000), "a [31m b");
  map.add_line("1000 10 " + std::string(100'000, 'x'));
  EXPECT_LE(name_at(map, 0x1000).size(), 400u);
}

class MadeCode : public testing::Test {
protected:
  MadeCode() { std::filesystem::remove(path_); }
  ~MadeCode() override { std::filesystem::remove(path_); }
  void write(const std::string &text) { std::ofstream(path_, std::ios::app) << text; }
  std::string name_at(uint64_t address) {
    const auto *function = code_.function_at(static_cast<uint32_t>(getpid()), address);
    return function ? function->name : "";
  }
  const std::string path_ = fmt::format("/tmp/perf-{}.map", getpid());
  values::MadeCode code_;
};

TEST_F(MadeCode, IsReadOnWhileItGrows) {
  EXPECT_EQ(name_at(0x1000), "");
  write("1000 10 first\n2000 10 sec");
  EXPECT_EQ(name_at(0x1000), "first");
  EXPECT_EQ(name_at(0x2000), ""); // its line has not ended
  write("ond\n3000 10 third\n");
  EXPECT_EQ(name_at(0x2000), "second");
  EXPECT_EQ(name_at(0x3000), "third");
}

TEST_F(MadeCode, ABeginAnewForgetsWhatWasThere) {
  write("1000 10 old\n2000 10 older\n");
  EXPECT_EQ(name_at(0x1000), "old");
  std::ofstream(path_) << "1000 10 new\n"; // as a program that executes another one
  EXPECT_EQ(name_at(0x1000), "new");
  EXPECT_EQ(name_at(0x2000), "");
  std::filesystem::remove(path_);
  write("1000 10 third\n4000 10 fourth\n");
  EXPECT_EQ(name_at(0x1000), "third");
}

TEST_F(MadeCode, AFileThatIsOlderThanTheProcessIsAnothers) {
  write("1000 10 another\n");
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() -
                                              std::chrono::hours(24 * 365));
  EXPECT_EQ(name_at(0x1000), "");
}

TEST_F(MadeCode, AFileWithoutLinesIsLeftAfterItsFirstPart) {
  write("1000 10 first\n" + std::string(1 << 17, 'x'));
  EXPECT_EQ(name_at(0x1000), "first");
  write("\n2000 10 second\n");
  EXPECT_EQ(name_at(0x2000), "");
  std::filesystem::resize_file(path_, 1ULL << 40); // a hole: nothing of it is read
  EXPECT_EQ(name_at(0x3000), "");
}

TEST_F(MadeCode, APipeOrALinkIsNotRead) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(name_at(0x1000), ""); // and is not waited for
  std::filesystem::remove(path_);
  const std::string other = path_ + ".other";
  std::ofstream(other) << "1000 10 other\n";
  std::filesystem::create_symlink(other, path_);
  EXPECT_EQ(name_at(0x1000), "");
  std::filesystem::remove(other);
}

TEST_F(MadeCode, AProcessThatIsGoneHasNone) {
  EXPECT_EQ(code_.function_at(999'999'999, 0x1000), nullptr);
}

} // namespace
