// Graphs for tests of what works on any graph: sparse and dense, with self loops, nodes that nothing
// reaches, loops that are entered at several places.
#pragma once

#include "binary/dominators.h"

#include <algorithm>
#include <cstdint>
#include <random>

namespace binary_test {

inline uint32_t below(std::mt19937_64 &random, size_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

// Successor lists without duplicates; the root, node 0, may have several successors and may be
// jumped back to.
inline binary::Edges random_graph(std::mt19937_64 &random) {
  uint32_t nodes = 1 + below(random, 40);
  binary::Edges edges(nodes);
  auto connect = [&](uint32_t from, uint32_t to) {
    auto &list = edges[from];
    if (std::find(list.begin(), list.end(), to) == list.end())
      list.push_back(to);
  };
  uint32_t dense = below(random, 4);
  uint32_t back_edges = below(random, 3); // of ten: most edges of code go forward
  uint32_t most = dense == 3 ? 6 : 2;
  for (uint32_t node = 0; node < nodes; node++)
    for (uint32_t i = below(random, most + 1); i; i--) {
      uint32_t to = below(random, nodes);
      if (dense < 2 && below(random, 10) >= 3 * back_edges)
        to = std::min(nodes - 1, node + 1 + below(random, 4));
      connect(node, to);
    }
  if (below(random, 3) == 0) // entered at several places
    for (uint32_t i = 1 + below(random, 4); i; i--)
      connect(0, below(random, nodes));
  if (below(random, 4)) // most are reached
    for (uint32_t node = 1; node < nodes; node++)
      if (below(random, 8))
        connect(below(random, node), node);
  return edges;
}

} // namespace binary_test
