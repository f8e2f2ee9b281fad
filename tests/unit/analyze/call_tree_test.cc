// Call trees of results made by hand: what is merged, cut and folded; sums are conserved.

#include "analyze/call_tree.h"

#include "tests/unit/profile/profile_builder.h"

#include <gtest/gtest.h>

namespace {

using analyze::TreeNode;

// Frames innermost first, as in a profile.
analyze::HeapContextRow row(std::vector<std::string> functions, uint64_t bytes) {
  analyze::HeapContextRow row;
  for (const std::string &function : functions) {
    image::Frame frame;
    frame.function = frame.linkage_name = function;
    frame.module = "/bin/app";
    row.frames.push_back(frame);
  }
  AssayObject object = {};
  object.size = bytes;
  object.reads = 1;
  row.sums.all = assay_hib_of(&object);
  while (row.owner + 1 < row.frames.size() && functions[row.owner] == "malloc")
    row.owner++;
  return row;
}

analyze::CallTree tree_of(std::vector<analyze::HeapContextRow> rows, bool bottom_up = false,
                          double least = 0) {
  analyze::HeapResult result;
  result.contexts = std::move(rows);
  analyze::TreeQuery query;
  query.bottom_up = bottom_up;
  query.least_share = least;
  return analyze::call_tree(result, query);
}

TEST(CallTree, MergesByFunctionAndRanks) {
  auto tree =
      tree_of({row({"malloc", "make", "parse", "main", "_start"}, 10),
               row({"malloc", "make", "parse", "main", "__libc_start_main", "stripped"}, 20),
               row({"read", "main", "_start"}, 50), row({"main", "_start"}, 5)});
  ASSERT_EQ(tree.root.children.size(), 1u);
  const TreeNode &main = tree.root.children[0];
  EXPECT_EQ(main.function, "main"); // what called it is left out
  EXPECT_EQ(main.total.bytes, 85u);
  EXPECT_EQ(main.self.bytes, 5u);
  ASSERT_EQ(main.children.size(), 2u);
  EXPECT_EQ(main.children[0].function, "read");
  EXPECT_EQ(main.children[1].function, "parse");
  ASSERT_EQ(main.children[1].children.size(), 1u);
  const TreeNode &make = main.children[1].children[0];
  EXPECT_EQ(make.function, "make"); // malloc below it is left out
  EXPECT_EQ(make.total.bytes, 30u);
  EXPECT_EQ(make.total.objects, 2u);
  EXPECT_EQ(make.total.accesses, 2u);
  EXPECT_TRUE(make.children.empty());
}

TEST(CallTree, BottomUpBeginsAtOwners) {
  auto tree =
      tree_of({row({"malloc", "make", "a", "main"}, 10), row({"make", "b", "main"}, 20)}, true);
  ASSERT_EQ(tree.root.children.size(), 1u);
  const TreeNode &make = tree.root.children[0];
  EXPECT_EQ(make.function, "make");
  ASSERT_EQ(make.children.size(), 2u);
  EXPECT_EQ(make.children[0].function, "b");
  EXPECT_EQ(make.children[0].children[0].function, "main");
}

TEST(CallTree, DirectRecursionIsOneNode) {
  auto tree = tree_of({row({"make", "walk", "walk", "walk", "main"}, 10), //
                       row({"make", "walk", "main"}, 1)});
  const TreeNode &walk = tree.root.children.at(0).children.at(0);
  EXPECT_EQ(walk.function, "walk");
  EXPECT_TRUE(walk.recursive);
  EXPECT_EQ(walk.total.bytes, 11u);
  EXPECT_EQ(walk.children.at(0).function, "make");
  EXPECT_EQ(walk.children.at(0).total.bytes, 11u);
}

TEST(CallTree, StacksWithoutTheirOuterFramesAreKeptApart) {
  auto cut = row({"make", "deep"}, 10);
  cut.stack_cut = true;
  auto whole = row({"make", "main"}, 1);
  whole.stack_cut = true; // what is missing called main
  auto tree = tree_of({cut, whole});
  ASSERT_EQ(tree.root.children.size(), 2u);
  EXPECT_EQ(tree.root.children[0].function, "(outer frames are missing)");
  EXPECT_EQ(tree.root.children[0].children.at(0).function, "deep");
}

TEST(CallTree, WhatIsLeftOutIsSummed) {
  auto tree =
      tree_of({row({"a", "main"}, 990), row({"b", "main"}, 6), row({"c", "main"}, 4)}, false, 0.01);
  const TreeNode &main = tree.root.children.at(0);
  ASSERT_EQ(main.children.size(), 1u);
  EXPECT_EQ(main.others.bytes, 10u);
  EXPECT_EQ(main.others_count, 2u);
}

uint64_t check_sums(const TreeNode &node) {
  uint64_t parts = node.self.bytes + node.others.bytes;
  for (const TreeNode &child : node.children)
    parts += check_sums(child);
  EXPECT_EQ(parts, node.total.bytes) << node.function;
  return node.total.bytes;
}

TEST(CallTree, PartsSumToTheWhole) {
  for (uint64_t seed = 1; seed <= 20; seed++)
    for (bool bottom_up : {false, true}) {
      profile::Profile p = profile_builder::random_profile(seed, 30);
      image::Symbols symbols = image::open(analyze::module_files(p));
      auto result = analyze::heap(p, symbols, {});
      auto tree = analyze::call_tree(result, {&analyze::tree_keys()[0], bottom_up, 0.05});
      check_sums(tree.root);
      EXPECT_EQ(tree.root.total.bytes, result.totals.all.size_total);
    }
}

} // namespace
