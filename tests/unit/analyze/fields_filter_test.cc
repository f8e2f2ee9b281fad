// --filter of `assay fields`: a struct's name, or its file, each by itself.
#include "analyze/fields.h"

#include "abi/tools.h"

#include <gtest/gtest.h>

namespace {

std::vector<std::string> kept_by(const std::string &filter) {
  profile::Profile p;
  p.processes.emplace_back().tools = ASSAY_TOOL_fields;
  for (const char *name : {"A", "Ab"}) {
    profile::Record record;
    record.name = name;
    record.file = "/src/virt.cc";
    record.size = 8;
    record.leaves = {{0, 64, 0, 1, 0, 8, "key", "long"}};
    profile::FieldUse use;
    use.record = {static_cast<uint32_t>(p.fields.records.size())};
    use.module = {0};
    use.reads = 1000;
    p.fields.records.push_back(record);
    p.fields.uses.push_back(use);
  }
  std::vector<std::string> names;
  for (const analyze::StructRow &row : analyze::fields(p, {"", filter, 0}).structs)
    names.push_back(row.record.name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(FieldsFilter, NameAndFileAreMatchedApart) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(kept_by("^A$"), Names{"A"});
  EXPECT_EQ(kept_by("^A"), (Names{"A", "Ab"}));
  EXPECT_EQ(kept_by("^/src/virt.cc$"), (Names{"A", "Ab"}));
  EXPECT_EQ(kept_by("A /src"), Names{});
}

} // namespace
