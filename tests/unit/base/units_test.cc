#include "base/fail.h"
#include "base/units.h"

#include <gtest/gtest.h>

namespace {

TEST(Units, KeepThreeDigits) {
  EXPECT_EQ(base::format_bytes(0), "0 B");
  EXPECT_EQ(base::format_bytes(999), "999 B");
  EXPECT_EQ(base::format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(base::format_bytes(1.5 * 1024 * 1024), "1.50 MiB");
  EXPECT_EQ(base::format_bytes(345.0 * 1024 * 1024), "345 MiB");
  EXPECT_EQ(base::format_duration_us(12300), "12.3 ms");
  EXPECT_EQ(base::format_duration_us(999.7), "1.00 ms");
  EXPECT_EQ(base::format_duration_us(90e6), "1.50 min");
  EXPECT_EQ(base::format_count(1e6), "1.00 M");
  EXPECT_EQ(base::format_count(17), "17");
  EXPECT_EQ(base::format_share(0.256), "26 %");
  EXPECT_EQ(base::format_share(0.0123), "1.2 %");
  EXPECT_EQ(base::format_share(0), "0 %");
  EXPECT_EQ(base::format_share(1), "100 %");
  EXPECT_EQ(base::format_share(2), "200 %");
  EXPECT_EQ(base::format_share(1 - 1e-15), "100 %"); // a sum of parts
}

TEST(Units, NounsAgreeWithTheNumberThatIsShown) {
  EXPECT_EQ(base::format_counted(0, "thread"), "0 threads");
  EXPECT_EQ(base::format_counted(1, "thread"), "1 thread");
  EXPECT_EQ(base::format_counted(3, "thread"), "3 threads");
  EXPECT_EQ(base::format_counted(1200, "thread"), "1.20 k threads");
  EXPECT_EQ(base::format_counted(1000, "thread"), "1.00 k threads");
  EXPECT_EQ(base::format_counted(0.999, "mark"), "1.00 marks");
  EXPECT_EQ(base::format_counted(1, "access", "accesses"), "1 access");
  EXPECT_EQ(base::format_counted(2, "access", "accesses"), "2 accesses");
  EXPECT_EQ(base::with_noun("1", "process", "processes"), "1 process");
  EXPECT_EQ(base::with_noun("11", "process", "processes"), "11 processes");
  EXPECT_EQ(base::with_noun("1234", "module"), "1234 modules");
  EXPECT_EQ(base::with_noun("1", "module"), "1 module");
}

TEST(Units, ParseWhatPeopleType) {
  EXPECT_EQ(base::parse_bytes("64"), 64u);
  EXPECT_EQ(base::parse_bytes("4KiB"), 4096u);
  EXPECT_EQ(base::parse_bytes("4kB"), 4000u);
  EXPECT_EQ(base::parse_bytes("1.5 MiB"), 1572864u);
  EXPECT_EQ(base::parse_count("15000000000000000000"), 15000000000000000000u);
  EXPECT_EQ(base::parse_duration_us("2s"), 2000000u);
  EXPECT_EQ(base::parse_duration_us("1.5ms"), 1500u);
  EXPECT_EQ(base::parse_count("10M"), 10000000u);
}

TEST(Units, OnlyNothingIs0AndOnlyTheWholeIs100Percent) {
  EXPECT_EQ(base::format_share(0.0004), "< 0.1 %");
  EXPECT_EQ(base::format_share(0.0006), "0.1 %");
  EXPECT_EQ(base::format_share(0.994), "99 %");
  EXPECT_EQ(base::format_share(0.996), "99.6 %");
  EXPECT_EQ(base::format_share(0.9994), "99.9 %");
  EXPECT_EQ(base::format_share(0.9996), "> 99.9 %");
}

TEST(Units, OneUnitHasOneMeaning) {
  for (const char *text : {"3", "4B", "5kB", "6KiB", "7.5MiB", "2TiB"})
    EXPECT_EQ(base::parse_number(text).value, double(base::parse_bytes(text))) << text;
  for (const char *text : {"3", "5k", "7.5M", "2G"})
    EXPECT_EQ(base::parse_number(text).value, double(base::parse_count(text))) << text;
  for (const char *text : {"4us", "5ms", "7.5s", "3min", "2h"})
    EXPECT_EQ(base::parse_number(text).value, double(base::parse_duration_us(text))) << text;
  EXPECT_EQ(base::parse_number("5%").value, base::parse_share("5%"));
  EXPECT_EQ(base::parse_number("-2k").value, -2000);
  EXPECT_EQ(base::parse_number("3").unit, base::UnitKind::kNone);
  EXPECT_EQ(base::parse_number("3k").unit, base::UnitKind::kCount);
  EXPECT_EQ(base::parse_number("3B").unit, base::UnitKind::kBytes);
  EXPECT_EQ(base::parse_number("3us").unit, base::UnitKind::kTime);
  EXPECT_EQ(base::parse_number("3%").unit, base::UnitKind::kShare);
  for (const char *text : {"64k", "2M", "5%", "3s"}) // thousands of what?
    EXPECT_THROW(base::parse_bytes(text), base::Failure) << text;
}

TEST(Units, RefuseTheRest) {
  for (const char *text : {"", "x", "4q", "-1", "1e300G", "nan", "4 k b"}) {
    EXPECT_THROW(base::parse_bytes(text), base::Failure) << text;
    EXPECT_THROW(base::parse_duration_us(text), base::Failure) << text;
  }
}

TEST(Units, SharesArePercent) {
  EXPECT_DOUBLE_EQ(base::parse_share("5%"), 0.05);
  EXPECT_DOUBLE_EQ(base::parse_share("0.5 %"), 0.005);
  for (const char *text : {"5", "", "%", "-1%", "101%", "x%", "5%%"})
    EXPECT_THROW(base::parse_share(text), base::Failure) << text;
}

} // namespace
