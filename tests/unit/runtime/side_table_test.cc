// Against std::map, one operation after the other.
#include "runtime/core/objects/side_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace {

using assay::SideObject;
using assay::SideTable;

SideObject object(uint64_t address, uint64_t size) {
  SideObject o = {};
  o.block = reinterpret_cast<const void *>(address);
  o.header.size = size;
  return o;
}

TEST(SideTable, HoldsWhatWasInsertedAndNotTaken) {
  static SideTable table; // as in the runtime: all zeros at first
  ASSERT_TRUE(table.create());
  std::map<uint64_t, uint64_t> wanted; // address -> size
  std::minstd_rand random(1);
  for (int i = 0; i < 100000; i++) {
    uint64_t address = 0x1000 + random() % 2000 * 16;
    const auto *block = reinterpret_cast<const void *>(address);
    SideObject found = {};
    if (random() % 2) {
      uint64_t size = random() % 1000 + 1;
      bool was_there = table.insert(object(address, size), &found);
      ASSERT_EQ(was_there, wanted.count(address) == 1);
      if (was_there) {
        ASSERT_EQ(found.header.size, wanted[address]);
      }
      wanted[address] = size;
    } else {
      ASSERT_EQ(table.take(block, found), wanted.count(address) == 1);
      if (found.block) {
        ASSERT_EQ(found.header.size, wanted[address]);
      }
      wanted.erase(address);
    }
    ASSERT_EQ(table.find(block, found), wanted.count(address) == 1);
  }
  std::map<uint64_t, uint64_t> walked;
  table.for_each(
      [&](const SideObject &o) { walked[reinterpret_cast<uint64_t>(o.block)] = o.header.size; });
  EXPECT_EQ(walked, wanted);
  SideObject changed = object(wanted.begin()->first, 77);
  table.update(changed);
  SideObject found = {};
  ASSERT_TRUE(table.find(changed.block, found));
  EXPECT_EQ(found.header.size, 77u);
}

} // namespace
