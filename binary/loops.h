// The loops of a graph, nested in each other.
#pragma once

#include "binary/dominators.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace binary {

struct Loop {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t head = 0;
  uint32_t parent = kNone; // the loop around it
  unsigned depth = 1;      // 1: outermost
  // Entered elsewhere than at its head too: turns cannot be counted at the head.
  bool irregular = false;
  std::vector<uint32_t> back; // nodes with an edge to the head from within
};

struct Loops {
  std::vector<Loop> all;           // a parent before its children
  std::vector<uint32_t> innermost; // by node: the loop that it is in, or kNone

  bool contains(uint32_t loop, uint32_t node) const {
    for (uint32_t at = innermost[node]; at != Loop::kNone; at = all[at].parent)
      if (at == loop)
        return true;
    return false;
  }
  unsigned depth_of(uint32_t node) const {
    return innermost[node] == Loop::kNone ? 0 : all[innermost[node]].depth;
  }
};

// The loops among the nodes that the root reaches.
Loops find_loops(const Edges &successors, const Dominators &dominators, uint32_t root);

// Makes a graph reducible, so that no loop is irregular: of a loop that is entered at several places,
// all but its head are copied for the entries beside the head. `original` grows by one for each copy
// and says what it is one of. False, and nothing is changed, if it would need more than `most` nodes.
bool make_reducible(Edges &successors, uint32_t root, std::vector<uint32_t> &original, size_t most);

} // namespace binary
