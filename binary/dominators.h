// Which nodes of a graph lie on every way from its root to a node.
//
// Source: Georgiadis, Tarjan, Werneck: Finding Dominators in Practice (the semi-NCA algorithm).
#pragma once

#include "binary/adjacency.h"
#include "binary/short_list.h"

#include <cstdint>
#include <vector>

namespace binary {

// Lists of successors by node.
using Edges = std::vector<NodeList>;

// Nodes that the root leads to, each before those that it leads to, but for edges that go back; the root first.
std::vector<uint32_t> reverse_postorder(const Edges &successors, uint32_t root);

struct Dominators {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<uint32_t> order;  // reachable nodes in reverse postorder; the root first
  std::vector<uint32_t> number; // place in `order`; kNone: not reachable
  std::vector<uint32_t>
      immediate;               // immediate dominator; the root's is itself, kNone if not reachable
  std::vector<uint32_t> depth; // in the tree of immediate dominators; 0: the root

  // Whether every way from the root to b leads through a. Every node dominates itself.
  bool dominates(uint32_t a, uint32_t b) const {
    return first_[a] <= first_[b] && last_[b] <= last_[a];
  }

  std::vector<uint32_t> first_, last_; // of a walk of the tree
  AdjacencyLists children;             // of each node in that tree, in the order of `order`
};

Dominators dominators(const Edges &successors, uint32_t root);

// Where definitions of variables meet: `defined` and the result are sets of up to 64 variables by
// node. The root counts as defining all of them.
//
// Source: Sreedhar, Gao: A Linear Time Algorithm for Placing Phi-Nodes.
std::vector<uint64_t> join_points(const Edges &successors, const Dominators &dominators,
                                  const std::vector<uint64_t> &defined);

} // namespace binary
