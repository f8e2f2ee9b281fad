// How a call tree is drawn.

#include "report/call_tree.h"

#include <gtest/gtest.h>

namespace {

using analyze::TreeNode;

TreeNode node(const std::string &function, uint64_t bytes, std::vector<TreeNode> children = {}) {
  TreeNode node;
  node.function = function;
  node.total.bytes = bytes;
  node.self.bytes = bytes;
  for (const TreeNode &child : children)
    node.self.bytes -= child.total.bytes;
  node.children = std::move(children);
  return node;
}

analyze::CallTree tree(std::vector<TreeNode> roots, uint64_t bytes) {
  analyze::CallTree tree;
  tree.root.children = std::move(roots);
  tree.root.total.bytes = bytes;
  return tree;
}

std::string drawn(const analyze::CallTree &tree) {
  analyze::HeapResult result;
  result.accesses_counted = false;
  return report::tree_text(tree, result, report::Style());
}

TEST(CallTreeText, OnlyWhatIsPartedIsIndented) {
  auto parse = node("parse", 700, {node("line", 700, {node("make", 400), node("copy", 300)})});
  auto main = node("main", 1000, {parse, node("read", 200)});
  EXPECT_EQ(drawn(tree({main}, 1000)), R"(
Where does the memory come from?
     bytes  share  objects  function, and below it what it called
  0.98 KiB  100 %        0  main
     700 B   70 %        0  ├─ parse
     700 B   70 %        0  │  line
     400 B   40 %        0  │  ├─ make
     300 B   30 %        0  │  └─ copy
     200 B   20 %        0  ├─ read
     100 B   10 %        0  └─ (itself)
  parts under 1 % are left out; --tree-min 0% shows all
)");
}

TEST(CallTreeText, SeveralRootsIndentWhatIsBelowThem) {
  auto make = node("make", 600, {node("main", 600)});
  auto text = drawn(tree({make, node("read", 400)}, 1000));
  EXPECT_NE(text.find("  make\n"), std::string::npos);
  EXPECT_NE(text.find("  └─ main\n"), std::string::npos);
}

TEST(CallTreeText, WhatIsLeftOutIsALineWhereItMatters) {
  auto main = node("main", 1000, {node("read", 900)});
  main.self.bytes = 0;
  main.others.bytes = 100;
  main.others_count = 30;
  EXPECT_NE(drawn(tree({main}, 1000)).find("└─ (30 others)"), std::string::npos);
}

TEST(CallTreeText, NothingIsSaidToBeNothing) {
  EXPECT_EQ(drawn(tree({}, 0)), "\nWhere does the memory come from?\n  nothing\n");
}

TEST(CallTreeJson, HasTotalsSharesAndChildren) {
  auto json = report::tree_json(tree({node("main", 1000, {node("read", 250)})}, 1000), true);
  EXPECT_EQ(json["key"], "bytes");
  EXPECT_EQ(json["direction"], "top-down");
  const auto &main = json["children"][0];
  EXPECT_EQ(main["function"], "main");
  EXPECT_EQ(main["total"]["bytes"], 1000);
  EXPECT_EQ(main["self"]["bytes"], 750);
  EXPECT_EQ(main["children"][0]["total_share"], 0.25);
}

} // namespace
