// docs/format.md says what abi/records.def says.

#include "profile/record_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

TEST(FormatPage, TablesAreThoseOfRecordsDef) {
  std::ifstream file(ASSAY_SOURCE_DIR "/docs/format.md");
  std::stringstream content;
  content << file.rdbuf();
  std::string page = content.str();
  size_t begin = page.find(profile::kFormatTablesBegin), end = page.find(profile::kFormatTablesEnd);
  ASSERT_NE(begin, std::string::npos) << "docs/format.md has no begin mark";
  ASSERT_NE(end, std::string::npos) << "docs/format.md has no end mark";
  begin += std::string(profile::kFormatTablesBegin).size();
  EXPECT_TRUE(page.substr(begin, end - begin) == "\n\n" + profile::format_tables() + "\n")
      << "docs/format.md has other tables than the program: run scripts/update-format-page";
}
