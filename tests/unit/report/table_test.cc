#include "report/table.h"

#include <gtest/gtest.h>

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
