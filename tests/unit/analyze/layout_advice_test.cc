// Layouts of records with known uses: what they cost, and what is advised.

#include "analyze/layout_advice.h"

#include "abi/fields.h"

#include <gtest/gtest.h>

namespace {

using analyze::FieldSets;
using analyze::LayoutAdvice;
using analyze::Member;
using profile::Leaf;
using profile::Record;

Record record_of(std::vector<std::pair<std::string, uint64_t>> members) {
  Record record;
  record.name = "R";
  uint64_t at = 0, most = 1;
  for (auto &[name, size] : members) {
    uint64_t alignment = size % 8 == 0 ? 8 : size % 4 == 0 ? 4 : 1;
    at = (at + alignment - 1) / alignment * alignment;
    record.leaves.push_back({at * 8, size * 8, 0, 1, 0, alignment, name, "t"});
    at += size;
    most = std::max(most, alignment);
  }
  record.size = (at + most - 1) / most * most;
  return record;
}

std::vector<Member> members(const Record &record, std::vector<uint64_t> accesses = {}) {
  accesses.resize(record.leaves.size());
  return analyze::members_of(record, accesses);
}

std::string order(const std::vector<Member> &members, const LayoutAdvice &advice) {
  std::string text;
  for (size_t i : advice.layout.order)
    text += members[i].name + " ";
  return text;
}

profile::FieldSet used(std::vector<uint32_t> leaves, uint64_t count, uint64_t adjacent = 0) {
  return {{0}, ASSAY_SET_WINDOW, std::move(leaves), count, adjacent};
}

TEST(LayoutAdvice, FieldsThatAreUsedTogetherComeTogether) {
  Record r = record_of({{"a", 8}, {"x", 120}, {"b", 8}, {"y", 56}});
  auto all = members(r, {10, 0, 10, 0});
  LayoutAdvice advice = analyze::advise_layout(r, all, {used({0, 2}, 100)});
  EXPECT_TRUE(advice.is_worth_it);
  EXPECT_DOUBLE_EQ(advice.lines_before, 2);
  EXPECT_DOUBLE_EQ(advice.lines_after, 1);
  EXPECT_EQ(order(all, advice), "a b x y ");
}

// 16 of 24 bytes are holes in the declared order.
TEST(LayoutAdvice, HolesAreClosed) {
  Record r = record_of({{"c1", 1}, {"p", 8}, {"c2", 1}});
  auto all = members(r, {1, 1, 1});
  EXPECT_EQ(r.size, 24U);
  ASSERT_EQ(analyze::holes_of(r, all).size(), 2U);
  LayoutAdvice advice = analyze::advise_layout(r, all, {used({0, 1, 2}, 10)});
  EXPECT_TRUE(advice.is_worth_it);
  EXPECT_EQ(advice.size_after, 16U);
}

// struct alignas(64) { long count; int state; }: one for each thread, in lines of their own.
TEST(LayoutAdvice, AnAlignmentOfItsOwnIsNoHole) {
  Record r = record_of({{"count", 8}, {"state", 4}});
  r.size = 64;
  auto all = members(r, {10, 10});
  LayoutAdvice advice = analyze::advise_layout(r, all, {used({0, 1}, 10, 10)});
  EXPECT_FALSE(advice.is_worth_it);
  EXPECT_EQ(advice.size_after, 64U);
  // Holes between members are closed, as far as the alignment lets them.
  r = record_of({{"c1", 1}, {"p", 120}, {"c2", 1}});
  r.size = 192;
  all = members(r, {10, 10, 10});
  advice = analyze::advise_layout(r, all, {used({0, 1, 2}, 10)});
  EXPECT_TRUE(advice.is_worth_it);
  EXPECT_EQ(advice.size_after, 128U);
}

TEST(LayoutAdvice, AWholeLineIsNotBetterInAnotherOrder) {
  Record r =
      record_of({{"a", 8}, {"b", 8}, {"c", 8}, {"d", 8}, {"e", 8}, {"f", 8}, {"g", 8}, {"h", 8}});
  LayoutAdvice advice =
      analyze::advise_layout(r, members(r), {used({0, 7}, 100, 100), used({3, 4}, 50, 50)});
  EXPECT_TRUE(advice.is_sweep);
  EXPECT_FALSE(advice.is_worth_it);
}

// Objects in a row: the order within 128 bytes does not matter, cold ones in a record of their own do.
TEST(LayoutAdvice, ASweepIsHelpedByASplit) {
  Record r = record_of({{"key", 8}, {"cold", 112}, {"value", 8}});
  auto all = members(r, {9, 0, 9});
  LayoutAdvice advice = analyze::advise_layout(r, all, {used({0, 2}, 100, 100)});
  ASSERT_EQ(advice.cold.size(), 1U);
  EXPECT_EQ(all[advice.cold[0]].name, "cold");
  EXPECT_LT(advice.lines_split, advice.lines_after / 2);
  EXPECT_EQ(advice.size_split, 24U);
}

TEST(LayoutAdvice, WhatMayNotMoveStays) {
  Record r = record_of({{"B::x", 8}, {"x", 120}, {"hot", 8}, {"tail", 0}});
  r.leaves[0].flags = ASSAY_LEAF_BASE;
  r.leaves[3].flags = ASSAY_LEAF_ARRAY;
  auto all = members(r, {9, 0, 9, 0});
  LayoutAdvice advice = analyze::advise_layout(r, all, {used({0, 2}, 100)});
  EXPECT_EQ(order(all, advice), "B hot x tail ");
}

// Of a type with a namespace and arguments, and of a member that has bases itself.
TEST(LayoutAdvice, BasesAreTheRecordsOwn) {
  Record r = record_of(
      {{"shop::Base<a::b>::x", 8}, {"x", 120}, {"hot.std::Base::p", 8}, {"hot.std::Base::q", 8}});
  r.leaves[0].flags = r.leaves[2].flags = r.leaves[3].flags = ASSAY_LEAF_BASE;
  auto all = members(r, {9, 0, 9, 0});
  LayoutAdvice advice = analyze::advise_layout(r, all, {used({0, 2}, 100)});
  EXPECT_EQ(order(all, advice), "shop::Base<a::b> hot x ");
  EXPECT_TRUE(all[0].is_of_compiler);
  EXPECT_FALSE(all[2].is_of_compiler);
}

// An array of one element at the end has more behind it, in C before flexible arrays.
TEST(LayoutAdvice, AnArrayAtTheEndStays) {
  for (const char *type : {"char[1]", "char[2]"}) {
    Record r = record_of({{"flag", 8}, {"x", 120}, {"tail", 2}});
    r.leaves[2].flags = ASSAY_LEAF_ARRAY;
    r.leaves[2].type = type;
    auto all = members(r, {9, 0, 9});
    LayoutAdvice advice = analyze::advise_layout(r, all, {used({0, 2}, 100)});
    EXPECT_EQ(order(all, advice), type == std::string("char[1]") ? "x flag tail " : "flag tail x ");
  }
}

// Members of a union, and bit-fields of one storage unit, move as one. What lies in a nested record
// cannot be closed: in front of the nodes of a std::set, and behind the char of {long, char}.
TEST(LayoutAdvice, HolesOfNestedRecordsAreTheirs) {
  Record r;
  r.name = "R";
  auto add = [&r](const std::string &name, uint64_t at, uint64_t size, uint64_t alignment) {
    r.leaves.push_back({at * 8, size * 8, 0, 1, 0, alignment, name, "t"});
  };
  add("a", 0, 8, 8);
  add("set.color", 16, 4, 8);
  add("set.count", 24, 8, 8);
  add("c", 32, 1, 1);
  add("in.x", 40, 8, 8);
  add("in.y", 48, 1, 8);
  add("d", 56, 1, 1);
  add("big.x", 64, 8, 32);
  add("e", 96, 8, 8);
  r.size = 128;
  const auto all = members(r);
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(all[1].offset, 8u);
  EXPECT_EQ(all[1].size, 24u);
  EXPECT_EQ(all[3].size, 16u);
  EXPECT_EQ(all[5].size, 32u);
  const std::vector<analyze::Hole> holes = analyze::holes_of(r, all);
  ASSERT_EQ(holes.size(), 3u);
  EXPECT_EQ(holes[0].offset, 33u);
  EXPECT_EQ(holes[1].offset, 57u);
  EXPECT_EQ(holes[2].offset, 104u);
  EXPECT_EQ(analyze::advise_layout(r, all, {used({0}, 100)}).size_after, 128u);
}

TEST(LayoutAdvice, WhatOverlapsIsOneMember) {
  Record r = record_of({{"u1", 8}, {"u2", 8}, {"b1", 4}});
  r.leaves[1].offset_bits = 0;
  r.leaves[0].flags = r.leaves[1].flags = ASSAY_LEAF_UNION;
  r.leaves[2] = {64, 3, ASSAY_LEAF_BIT_FIELD, 1, 0, 4, "b1", "unsigned"};
  r.leaves.push_back({67, 5, ASSAY_LEAF_BIT_FIELD, 1, 0, 1, "b2", "unsigned"});
  auto all = members(r);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "u1|u2");
  EXPECT_EQ(all[1].name, "b1|b2");
}

TEST(LayoutAdvice, NothingUsedNothingAdvised) {
  Record r = record_of({{"a", 8}, {"b", 8}});
  EXPECT_FALSE(analyze::advise_layout(r, members(r), {}).is_worth_it);
}

// As in C, where objects of several types are taken for those of a type with their common first members.
TEST(LayoutAdvice, CommonFirstPartStays) {
  Record header = record_of({{"next", 8}, {"tag", 4}});
  Record r = record_of({{"next", 8}, {"tag", 4}, {"cold", 112}, {"hot", 8}});
  Record other = record_of({{"next", 8}, {"size", 4}, {"cold", 112}, {"hot", 8}});
  const std::vector<Record> records = {header, r, other};
  const analyze::FirstParts parts(records);
  EXPECT_EQ(parts.of(r), 2u);
  EXPECT_EQ(parts.of(other), 0u);
  EXPECT_EQ(parts.of(header), 0u);
  const auto all = analyze::members_of(r, {0, 10, 0, 50}, parts.of(r));
  EXPECT_EQ(order(all, analyze::advise_layout(r, all, {used({1, 3}, 100)})), "next tag hot cold ");
}

// Nor does a first member that is another record, as in C, where it is taken for a base.
TEST(LayoutAdvice, EmbeddedFirstRecordStays) {
  Record base = record_of({{"kind", 8}});
  Record r = record_of({{"base.kind", 8}, {"cold", 112}, {"hot", 8}});
  Record other =
      record_of({{"pos.x", 8}, {"cold", 112}, {"hot", 8}}); // of one that nobody accesses alone
  const std::vector<Record> records = {base, r, other};
  const analyze::FirstParts parts(records);
  EXPECT_EQ(parts.of(r), 1u);
  EXPECT_EQ(parts.of(other), 0u);
  const auto all = analyze::members_of(r, {10, 0, 50}, parts.of(r));
  EXPECT_EQ(order(all, analyze::advise_layout(r, all, {used({0, 2}, 100)})), "base hot cold ");
}

// The members that matter are named first, the others as they are declared.
TEST(LayoutAdvice, HotMembersComeFirst) {
  Record r = record_of({{"c1", 4}, {"c2", 4}, {"a", 4}, {"big", 180}, {"b", 4}, {"c3", 4}});
  const auto all = members(r, {1, 1, 100, 1, 200, 1});
  std::vector<profile::FieldSet> sets = {used({2, 4}, 1000), used({0, 1, 3, 5}, 1)};
  EXPECT_EQ(order(all, analyze::advise_layout(r, all, sets)), "b a c1 c2 big c3 ");
}

} // namespace
