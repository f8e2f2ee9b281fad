// The loops of a graph, nested in each other.
#pragma once

#include "binary/dominators.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace binary {

struct Loop {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t header = 0;
  uint32_t parent = kNone; // the loop around it
  unsigned depth = 1;      // 1: outermost
  // Entered elsewhere than at its header too: iterations cannot be counted at the header.
  bool irreducible = false;
  std::vector<uint32_t> back;   // nodes with an edge to the header from within
  uint32_t first = 0, last = 0; // of a walk of the nest
};

struct Loops {
  std::vector<Loop> all;           // a parent before its children
  std::vector<uint32_t> innermost; // by node: the loop that it is in, or kNone

  bool contains(uint32_t loop, uint32_t node) const {
    return innermost[node] != Loop::kNone && encloses(loop, innermost[node]);
  }
  // Whether `inner` is the same loop, or within it.
  bool encloses(uint32_t outer, uint32_t inner) const {
    return all[outer].first <= all[inner].first && all[inner].last <= all[outer].last;
  }
  unsigned depth_of(uint32_t node) const {
    return innermost[node] == Loop::kNone ? 0 : all[innermost[node]].depth;
  }
};

// The loops among the nodes that the root reaches.
//
// Source: Ramalingam: Identifying Loops in Almost Linear Time.
Loops find_loops(const Edges &successors, const Dominators &dominators, uint32_t root);

// Makes a graph reducible, so that no loop is irreducible: of a loop that is entered at several places,
// all but its header are copied for the entries beside it. `original` grows by one for each copy and
// says what it is one of. False, and nothing is changed, if it would need more than `most` nodes, or
// work that is not in proportion to the graph.
bool make_reducible(Edges &successors, uint32_t root, std::vector<uint32_t> &original, size_t most);

} // namespace binary
