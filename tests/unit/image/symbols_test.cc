// Symbols of a program that the test compiles itself, so that names, lines and inlining are known.

#include "image/elf.h"
#include "image/executable.h"
#include "image/layout.h"
#include "image/symbols.h"

#include "base/fail.h"
#include "tests/unit/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

namespace {

// Line 5 is the call in the inlined function.
const char *const kSource = R"(extern "C" void *malloc(unsigned long);
namespace app {
struct Padded { char a; long b; char c; };
static inline __attribute__((always_inline)) void *inlined(unsigned long n) {
  return malloc(n);
}
__attribute__((noinline)) void *outer(unsigned long n) { void *p = inlined(n + 1); __asm__ volatile("" ::: "memory"); return p; }
}
app::Padded padded;
int main() { return app::outer(4) == nullptr; }
)";

class Program : public testing::Test {
protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    source_ = folder_->in("symbols_program.cc");
    program_ = folder_->in("symbols_program");
    std::ofstream(source_) << kSource;
    std::string command = "clang++-22 -g -O1 -Wl,--build-id -o " + program_ + " " + source_;
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static image::Function function(const std::string &linkage_name) {
    for (const image::Function &each : image::functions(program_))
      if (each.linkage_name == linkage_name)
        return each;
    return {};
  }
  static std::unique_ptr<TemporaryFolder> folder_;
  static std::string source_, program_;
};
std::unique_ptr<TemporaryFolder> Program::folder_;
std::string Program::source_, Program::program_;

TEST_F(Program, ACallNamesInlinedFramesInnermostFirst) {
  auto build_id = image::read_build_id(program_);
  ASSERT_TRUE(build_id && !build_id->empty());
  image::Function outer = function("_ZN3app5outerEm");
  ASSERT_GT(outer.size, 0u);
  image::Symbols symbols = image::open({{program_, *build_id}});
  bool found = false;
  for (uint64_t offset = outer.address + 1; offset <= outer.address + outer.size; offset++) {
    const auto &frames = symbols.call(0, offset);
    ASSERT_FALSE(frames.empty());
    if (frames.size() != 2)
      continue;
    if (frames[0].line != 5)
      continue;
    found = true;
    EXPECT_EQ(frames[0].function, "app::inlined(unsigned long)");
    EXPECT_TRUE(frames[0].inlined);
    EXPECT_EQ(frames[0].function_start_line, 4u);
    EXPECT_EQ(frames[1].function, "app::outer(unsigned long)");
    EXPECT_EQ(frames[1].linkage_name, "_ZN3app5outerEm");
    EXPECT_EQ(frames[1].line, 7u);
    EXPECT_EQ(frames[1].file, source_);
    EXPECT_FALSE(frames[1].inlined);
    EXPECT_EQ(frames[1].module, program_);
    EXPECT_EQ(frames[1].address, offset - 1);
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(symbols.notes().empty());
}

// LLVM reads the notes as well, and read_build_id asks it.
TEST_F(Program, TheBuildIdIsOfTheBytesThatWereRead) {
  for (const char *style : {"sha1", "md5", "uuid", "0x1234", "none"}) {
    const std::string path = program_ + "-" + style;
    ASSERT_EQ(
        std::system(
            fmt::format("clang++-22 -O1 -fcf-protection -Wl,-z,shstk -Wl,--build-id={} -o {} {}",
                        style, path, source_)
                .c_str()),
        0);
    const auto expected = image::read_build_id(path);
    ASSERT_TRUE(expected);
    EXPECT_EQ(expected->empty(), std::string_view(style) == "none");
    const image::Executable executable(path);
    std::filesystem::remove(path);
    std::filesystem::copy_file("/proc/self/exe", path);
    EXPECT_EQ(executable.build_id(), *expected) << style;
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(image::Executable(self).build_id(), *image::read_build_id(self));
}

TEST_F(Program, AReturnAddressAtTheEndOfAFunctionBelongsToIt) {
  image::Function outer = function("_ZN3app5outerEm");
  image::Symbols symbols = image::open({{program_, {}}});
  EXPECT_EQ(symbols.call(0, outer.address + outer.size).back().linkage_name, "_ZN3app5outerEm");
}

TEST_F(Program, AnotherBuildIdYieldsOffsetsAndOneNote) {
  image::Symbols symbols = image::open({{program_, {0xab, 0xcd}}});
  EXPECT_EQ(symbols.call(0, 0x1235).front().function, "symbols_program+0x1234");
  symbols.call(0, 0x2000);
  ASSERT_EQ(symbols.notes().size(), 1u);
  EXPECT_NE(symbols.notes()[0].find("build id abcd"), std::string::npos) << symbols.notes()[0];
}

TEST(Symbols, AMissingFileYieldsOffsetsAndOneNote) {
  image::Symbols symbols = image::open({{"/nowhere/app", {0xab}}});
  EXPECT_EQ(symbols.call(0, 0x11).front().function, "app+0x10");
  symbols.call(0, 0x12);
  ASSERT_EQ(symbols.notes().size(), 1u);
  EXPECT_NE(symbols.notes()[0].find("build id ab is not there"), std::string::npos);
}

TEST(Symbols, AnAddressOfNoModuleIsShownAsItIs) {
  image::Symbols symbols = image::open({});
  EXPECT_EQ(symbols.call(image::Symbols::kNoModule, 0x1001).front().function, "0x1000");
  EXPECT_EQ(symbols.call(7, 0x1001).front().function, "0x1000");
  EXPECT_TRUE(symbols.notes().empty());
}

TEST_F(Program, LayoutsTellPlaceAndHoles) {
  auto layouts = image::struct_layouts(program_, {"app::Padded", "app::Absent"});
  ASSERT_EQ(layouts.size(), 1u);
  const image::StructLayout &padded = layouts.find("app::Padded")->second;
  EXPECT_EQ(padded.size, 24u);
  EXPECT_EQ(padded.file, source_);
  EXPECT_EQ(padded.line, 3u);
  ASSERT_EQ(padded.members.size(), 3u);
  EXPECT_EQ(padded.members[1].name, "b");
  EXPECT_EQ(padded.members[1].offset, 8u);
  EXPECT_EQ(padded.hole_bytes(), 14u);
}

TEST(Elf, WhatIsNoElfFileIsRefused) {
  EXPECT_FALSE(image::read_build_id("/etc/passwd"));
  EXPECT_THROW(image::functions("/etc/passwd"), base::Failure);
  EXPECT_EQ(image::check_presence("/nowhere", {1}).presence, image::Presence::missing);
}

} // namespace
