// Which way through the program leads to the memory: the contexts of a heap result as a tree of
// functions.
//
// Top-down, a node's children are what it calls; bottom-up, the roots are the owners of allocations
// and a node's children are what calls it. Frames of one function below one node are one node,
// whatever their lines; rounds of direct recursion are one. Machinery of allocation inside the
// owner, and what called main, are left out.
#pragma once

#include "analyze/heap.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace analyze {

struct TreeAmounts {
  uint64_t bytes = 0, objects = 0, accesses = 0, live_bytes = 0, at_peak_bytes = 0;
  void add(const TreeAmounts &other);
};

struct TreeNode {
  std::string function; // demangled; "[name]" of a module without symbols
  std::string module;   // path; empty if unknown
  std::string file;     // of its definition; empty if unknown
  uint32_t line = 0;    // where it starts
  bool recursive = false;
  TreeAmounts total, self;        // self: of contexts that end here; total: and in the children
  std::vector<TreeNode> children; // most first
  TreeAmounts others;             // of children that are left out
  uint64_t others_count = 0;
};

// By what nodes are ranked and left out.
struct TreeKey {
  const char *key;
  const char *question;
  bool needs_accesses;
  uint64_t (*of)(const TreeAmounts &);
};
std::span<const TreeKey> tree_keys();

struct TreeQuery {
  const TreeKey *key = &tree_keys().front();
  bool bottom_up = false;
  double least_share = 0.01; // nodes with less of the whole are left out
};

struct CallTree {
  TreeQuery query;
  TreeNode root; // no function: its children are the roots, its total is the whole
};

// Conserved: every node's total is the sum of its self, its children's totals, and its others.
CallTree call_tree(const HeapResult &result, const TreeQuery &query);

} // namespace analyze
