// docs/micro-ops.md says what abi/uops.def says.

#include "report/micro_ops.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace {

TEST(MicroOpsPage, TablesAreThoseOfUopsDef) {
  std::ifstream file(ASSAY_SOURCE_DIR "/docs/micro-ops.md");
  std::stringstream content;
  content << file.rdbuf();
  std::string page = content.str();
  size_t begin = page.find(report::kMicroOpTablesBegin), end = page.find(report::kMicroOpTablesEnd);
  ASSERT_NE(begin, std::string::npos) << "docs/micro-ops.md has no begin mark";
  ASSERT_NE(end, std::string::npos) << "docs/micro-ops.md has no end mark";
  begin += std::string(report::kMicroOpTablesBegin).size();
  EXPECT_EQ(page.substr(begin, end - begin), "\n\n" + report::micro_op_tables() + "\n")
      << "replace the tables by the output of `assay explain --micro-ops`";
}

TEST(MicroOpsPage, EachMicroOpStandsInOneTable) {
  std::string tables = report::micro_op_tables();
  for (const char *name : {
#define ASSAY_UOP(name, operands, expression, meaning) #name,
#define ASSAY_UOP_EFFECT(name, operands, expression, meaning) #name,
#include "abi/uops.def"
       }) {
    std::string row = std::string("\n| `") + name + "` |";
    size_t at = tables.find(row);
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_EQ(tables.find(row, at + 1), std::string::npos) << name;
  }
}

} // namespace
