// The cheapest set of nodes that lies on every way from a source to a sink.
//
// Source: Dinic: Algorithm for solution of a problem of maximum flow in a network with power estimation (1970).
#pragma once

#include <cstdint>
#include <vector>

namespace trace {

class MinCut {
public:
  static constexpr uint64_t kNever = UINT64_MAX / 4; // a price that is not paid

  // A node that may be cut for a price; numbered from 0.
  uint32_t node(uint64_t price);
  void edge(uint32_t from, uint32_t to);
  void source(uint32_t node);
  void sink(uint32_t node);

  // False if no set is cheap enough to be one. Else is_cut() says which nodes it has: the first
  // ones on the ways from the sources.
  bool solve();
  bool is_cut(uint32_t node) const;

private:
  struct Arc {
    uint32_t to, next; // the next arc of the same node; 0: none
    uint64_t left;
  };
  void half_arc(uint32_t from, uint32_t to, uint64_t capacity);
  void arc(uint32_t from, uint32_t to, uint64_t capacity);
  bool reach();
  uint64_t push();

  // Node n is 2n + 2 (where ways come in) and 2n + 3 (where they go on); 0 is the source, 1 the sink.
  std::vector<uint32_t> first_ = {0, 0}; // arc of each node; 0: none
  std::vector<Arc> arcs_ = {
      {}, {}}; // each arc beside the opposite one: their numbers differ in the last bit
  std::vector<uint32_t> level_, left_; // of each node; the first of its arcs that may lead on
  std::vector<uint32_t> work_, way_;
};

} // namespace trace
