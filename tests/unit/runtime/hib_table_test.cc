// The table may write an entry whenever it needs room: what it writes, all together, is what was added.
#include "runtime/heap/hib_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace {

using assay::ContextId;
using assay::heap::HibEntry;
using assay::heap::HibTable;
using Users = HibTable::Users;

std::map<ContextId, AssayHib> written;
std::vector<ContextId> order;

void take(const HibEntry &entry) {
  order.push_back(entry.context);
  auto [sum, is_new] = written.try_emplace(entry.context, entry.hib);
  if (!is_new)
    assay_hib_merge(&sum->second, &entry.hib, 1);
}

AssayObject object(uint64_t begin, uint64_t end) {
  AssayObject o = {};
  o.size = begin % 100 + 1;
  o.reads = begin % 7;
  o.alloc_us = begin;
  o.free_us = end;
  o.blocks_spanned = 2;
  o.blocks_touched = begin % 3;
  o.alloc_cpu = begin % 2;
  return o;
}

class Tables : public testing::Test {
protected:
  void SetUp() override {
    written.clear();
    order.clear();
  }
};

TEST_F(Tables, WriteWhatWasAddedWhateverTheirSize) {
  for (auto [sets, ways, users] : {std::tuple{uint64_t{1}, 1, Users::kMany},
                                   {7, 2, Users::kOne},
                                   {1021, 4, Users::kMany},
                                   {UINT64_MAX, 1, Users::kMany},
                                   {0, 0, Users::kOne}}) {
    SetUp();
    HibTable table;
    ASSERT_TRUE(table.create(sets, uint64_t(ways), users, take));
    std::map<ContextId, AssayHib> wanted;
    std::minstd_rand random(1);
    for (uint64_t i = 0; i < 20000; i++) {
      ContextId context{uint32_t(1 + random() % 300)};
      AssayObject o = object(i, i + 1 + random() % 50);
      table.add(context, o);
      auto [sum, is_new] = wanted.try_emplace(context);
      if (is_new)
        assay_hib_clear(&sum->second);
      assay_hib_add(&sum->second, &o);
    }
    table.write_all();
    ASSERT_EQ(written.size(), wanted.size());
    for (auto &[context, sum] : wanted)
      EXPECT_EQ(std::memcmp(&sum, &written[context], sizeof sum), 0)
          << uint32_t(context) << " of " << sets << "x" << ways;
    table.write_all(); // all were emptied
    EXPECT_EQ(written.size(), wanted.size());
    EXPECT_EQ(written.begin()->second.alloc_count, wanted.begin()->second.alloc_count);
  }
}

TEST_F(Tables, TheOldestEntryOfASetMakesRoom) {
  HibTable table;
  ASSERT_TRUE(table.create(1, 2, Users::kMany, take));
  table.add(ContextId{1}, object(1, 2));
  table.add(ContextId{2}, object(2, 3));
  table.add(ContextId{1}, object(3, 4));
  table.add(ContextId{3}, object(4, 5)); // 2 was used longest ago
  EXPECT_EQ(order, std::vector{ContextId{2}});
  table.clear();
  table.write_all();
  EXPECT_EQ(order, std::vector{ContextId{2}}); // what was cleared is not written
}

} // namespace
