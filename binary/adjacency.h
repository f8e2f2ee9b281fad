// Lists of numbers, one for each node of a graph, in two blocks of memory: for lists that do not grow, of which a graph
// has many, and most are short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace binary {

class AdjacencyLists {
public:
  AdjacencyLists() = default;
  // `each(add)` calls add(node, item) for all items, those of a node in their order. It is called
  // twice, and must do the same both times.
  template <class Each> AdjacencyLists(size_t nodes, Each each) : begin_(nodes + 2, 0) {
    each([&](uint32_t node, uint32_t) { begin_[node + 2]++; });
    for (size_t i = 2; i < begin_.size(); i++)
      begin_[i] += begin_[i - 1];
    items_.resize(begin_.back());
    each([&](uint32_t node, uint32_t item) { items_[begin_[node + 1]++] = item; });
  }

  size_t size() const { return begin_.size() < 2 ? 0 : begin_.size() - 2; } // nodes
  std::span<const uint32_t> operator[](size_t node) const {
    return std::span(items_).subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }

private:
  std::vector<uint32_t>
      begin_; // by node, in items_; the last one is only needed while they are made
  std::vector<uint32_t> items_;
};

} // namespace binary
