#include "base/shell_words.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

TEST(ShellWords, AreQuotedWhereTheyMustBe) {
  EXPECT_EQ(base::shell_word("./app-1.0"), "./app-1.0");
  EXPECT_EQ(base::shell_word("--size=4,5"), "--size=4,5");
  EXPECT_EQ(base::shell_word(""), "''");
  EXPECT_EQ(base::shell_word("print(1)"), "'print(1)'");
  EXPECT_EQ(base::shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(base::shell_word("a b"), "'a b'");
  EXPECT_EQ(base::shell_word("~"), "'~'");
  EXPECT_EQ(base::shell_command(std::vector<std::string>{"lua5.4", "-e", "print(1)"}),
            "lua5.4 -e 'print(1)'");
}

} // namespace
