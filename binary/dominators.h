// Which nodes of a graph lie on every way from its root to a node.
//
// Source: Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm.
#pragma once

#include <cstdint>
#include <vector>

namespace binary {

// Lists of successors by node.
using Edges = std::vector<std::vector<uint32_t>>;

struct Dominators {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<uint32_t> order;  // reachable nodes in reverse postorder; the root first
  std::vector<uint32_t> number; // place in `order`; kNone: not reachable
  std::vector<uint32_t>
      immediate; // immediate dominator; the root's is itself, kNone if not reachable
  std::vector<std::vector<uint32_t>> frontier; // where a definition meets others

  // Whether every way from the root to b leads through a. Every node dominates itself.
  bool dominates(uint32_t a, uint32_t b) const {
    return first_[a] <= first_[b] && last_[b] <= last_[a];
  }

  std::vector<uint32_t> first_, last_; // of a walk of the tree
  std::vector<std::vector<uint32_t>> children;
};

Dominators dominators(const Edges &successors, uint32_t root);

} // namespace binary
