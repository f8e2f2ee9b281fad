#include "report/table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

using report::Style;
using report::Table;

namespace {

TEST(Table, AlignsAndFitsTheWidth) {
  Table table;
  table.column("n", Table::Align::right);
  table.column("site", Table::Align::left);
  table.row({"1", "short"});
  table.row({"1000", std::string(300, 'x')});
  Style style;
  std::istringstream lines(table.text(style));
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(report::columns_of(line), style.width) << line;
  EXPECT_EQ(table.text(style).find("     n  site"), 0u) << table.text(style);
}

TEST(Table, WhereAFunctionIsIsKept) {
  Table table;
  table.column("n", Table::Align::right);
  table.column("site", Table::Align::left);
  const std::string where = " a_file.cc:12, 0x11870 in program";
  table.row({"1", std::string(300, 'x')}, where);
  table.row({"2", "main"}, where + std::string(100, 'y')); // wider than the table
  const std::string text = table.text(Style());
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  EXPECT_EQ(report::columns_of(line), Style().width) << line;
  EXPECT_NE(line.find("xxx…xxx"), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with("x" + where)) << line;
  EXPECT_NE(text.find("main" + where + "yyy"), std::string::npos) << text;
}

TEST(Table, COLUMNSIsAsWideAsItSays) {
  setenv("COLUMNS", "200", 1);
  EXPECT_EQ(report::style_for(-1).width, 200u);
  setenv("COLUMNS", "12", 1);
  EXPECT_EQ(report::style_for(-1).width, 80u);
  for (const char *nothing : {"", "x", "-5", "0"}) {
    setenv("COLUMNS", nothing, 1);
    EXPECT_EQ(report::style_for(-1).width, 100u) << nothing;
  }
  unsetenv("COLUMNS");
  EXPECT_EQ(report::style_for(-1).width, 100u);
}

TEST(Table, ShortensInTheMiddle) {
  EXPECT_EQ(report::shortened("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(report::shortened("abc", 5), "abc");
  EXPECT_EQ(report::columns_of("a…b"), 3u);
}

TEST(Table, NamesCannotSteerTheTerminal) {
  EXPECT_EQ(report::printable("a\x1b[31mb\n\xff"
                              "c\xc2\x9b"),
            "a?[31mb??c??");
  EXPECT_EQ(report::printable("naïve …"), "naïve …");
}

} // namespace
