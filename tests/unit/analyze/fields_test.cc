// What is used together: of windows where there are enough, else of stretches of code.
#include "analyze/fields.h"

#include "abi/fields.h"
#include "abi/tools.h"

#include <gtest/gtest.h>

namespace {

using analyze::StructRow;

// A sweep over an array of { long key; long payload[6]; long used; }: a window has `rounds` samples, whose objects have
// neighbours in `adjacent` of 1,000 cases.
StructRow row_of_sweep(uint64_t rounds, uint64_t adjacent, std::vector<uint32_t> sampled = {0, 2}) {
  profile::Profile p;
  p.processes.emplace_back().tools = ASSAY_TOOL_fields;
  profile::Record record;
  record.name = "R";
  record.size = 64;
  record.leaves = {{0, 64, 0, 1, 0, 8, "key", "long"},
                   {64, 64, 0, 6, 8, 8, "payload", "long"},
                   {448, 64, 0, 1, 0, 8, "used", "long"}};
  p.fields.records.push_back(record);
  profile::FieldUse use;
  use.record = {0};
  use.module = {0};
  for (uint32_t leaf : {0, 2}) {
    use.first = leaf;
    use.reads = 1000000;
    p.fields.uses.push_back(use);
  }
  p.fields.sets.push_back({{0}, ASSAY_SET_STRETCH, {0, 2}, 1000000, 0});
  if (rounds) {
    p.fields.sets.push_back({{0}, ASSAY_SET_WINDOW, std::move(sampled), 1000, adjacent});
    p.fields.sampling.push_back({{0}, rounds, 1000, 1000});
  }
  return analyze::fields(p, {}).structs.at(0);
}

TEST(Fields, FewWindowsStillSayWhetherNeighboursAreUsed) {
  for (uint64_t rounds : {1, 15, 16, 1000}) {
    const StructRow sweep = row_of_sweep(rounds, 990), apart = row_of_sweep(rounds, 0);
    EXPECT_EQ(sweep.is_sampled, rounds >= 16);
    EXPECT_TRUE(sweep.advice.is_sweep) << rounds;
    EXPECT_FALSE(sweep.advice.is_worth_it) << rounds;
    EXPECT_TRUE(apart.advice.is_worth_it) << rounds;
  }
}

TEST(Fields, WindowsOfAnotherPhaseSayNothing) {
  const StructRow row = row_of_sweep(100, 990, {1}); // of what the counts say is never used
  EXPECT_FALSE(row.is_sampled);
  EXPECT_FALSE(row.advice.is_sweep);
}

TEST(Fields, WithoutWindowsObjectsAreTakenToLieApart) {
  EXPECT_TRUE(row_of_sweep(0, 0).advice.is_worth_it);
}

} // namespace
