// Go's own table of functions, in files that an assembler makes of it: found where the linkers of
// Go and of C put it, and not looked for among variables.

#include "image/executable.h"

#include "built_files.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

using image::CodeRange;
using image::Executable;
using image::FoundBy;

class GoFunctions : public image_tests::Files {
protected:
  // Two functions of 3 and 2 bytes; the table of Go 1.18 and later lies in `section`.
  std::vector<CodeRange> in(const std::string &section, const std::string &command) const {
    const Executable executable(built(command + " -s", R"(
.text
text:
.globl _start
_start: nop; nop; ret
second: nop; ret
end:
.section )" + section + R"(
.p2align 5
table: .long 0xfffffff0; .byte 0, 0, 1, 8
.quad 2, 0, text, names - table, 0, 0, 0, functions - table
names: .asciz "main.main"
.asciz "main.second"
.p2align 3
functions: .long _start - text, first_info - functions, second - text, second_info - functions, end - text
first_info: .long _start - text, 0
second_info: .long second - text, 10
.zero 64
)"));
    std::vector<CodeRange> found;
    for (const CodeRange &range : executable.functions())
      if (range.found_by == FoundBy::go)
        found.push_back(range);
    return found;
  }
};

void expect_both(const std::vector<CodeRange> &found) {
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "main.main");
  EXPECT_EQ(found[0].end - found[0].begin, 3u);
  EXPECT_EQ(found[1].name, "main.second");
  EXPECT_EQ(found[1].begin, found[0].end);
  EXPECT_EQ(found[1].end - found[1].begin, 2u);
}

TEST_F(GoFunctions, AreFoundAmongConstants) {
  expect_both(in(".rodata,\"a\"", "gcc -no-pie"));
}

TEST_F(GoFunctions, AreFoundAmongWhatRelocationsFill) {
  expect_both(in(".data.rel.ro,\"aw\"", "gcc -pie"));
}

// Without a range that is read-only later, the table may be anywhere.
TEST_F(GoFunctions, AreFoundInAWritableSegmentOfAFileThatProtectsNothing) {
  expect_both(in(".data", "gcc -pie -Wl,-z,norelro"));
}

TEST_F(GoFunctions, AreNotLookedForAmongVariables) {
  EXPECT_TRUE(in(".data", "gcc -pie -Wl,-z,relro").empty());
}

} // namespace
