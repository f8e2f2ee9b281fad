// Ways are pushed along without recursion: a chain of definitions may be as long as its function.
//
// Nodes have prices, but flow goes along arcs. So a node is two with an arc of its price between
// them, and edges cost more than is ever paid. Each search gives the nodes their levels, as far as
// the sink's, and ways are pushed along rising levels until none is left; left_ remembers which arcs
// of a node lead nowhere. A way is left only as far as its outermost arc that is used up. After the
// search that fails, the cut is the nodes that were reached but not passed: the first ones on the
// ways from the sources.

#include "trace/min_cut.h"

#include <algorithm>

namespace trace {
namespace {

constexpr uint32_t kSource = 0, kSink = 1, kUnreached = UINT32_MAX;

uint32_t in_of(uint32_t node) {
  return 2 * node + 2;
}
uint32_t out_of(uint32_t node) {
  return 2 * node + 3;
}

} // namespace

void MinCut::half_arc(uint32_t from, uint32_t to, uint64_t capacity) {
  arcs_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<uint32_t>(arcs_.size() - 1);
}

void MinCut::arc(uint32_t from, uint32_t to, uint64_t capacity) {
  half_arc(from, to, capacity);
  half_arc(to, from, 0);
}

uint32_t MinCut::node(uint64_t price) {
  const auto number = static_cast<uint32_t>(first_.size() / 2 - 1);
  first_.resize(first_.size() + 2);
  arc(in_of(number), out_of(number), price);
  return number;
}

void MinCut::edge(uint32_t from, uint32_t to) {
  arc(out_of(from), in_of(to), kNever);
}

void MinCut::source(uint32_t node) {
  arc(kSource, in_of(node), kNever);
}

void MinCut::sink(uint32_t node) {
  arc(out_of(node), kSink, kNever);
}

bool MinCut::reach() {
  level_.assign(first_.size(), kUnreached);
  level_[kSource] = 0;
  work_.assign(1, kSource);
  for (size_t w = 0; w < work_.size(); w++) {
    const uint32_t from = work_[w];
    for (uint32_t a = first_[from]; a; a = arcs_[a].next)
      if (const uint32_t to = arcs_[a].to; arcs_[a].left && level_[to] == kUnreached) {
        level_[to] = level_[from] + 1;
        if (to == kSink)
          return true;
        work_.push_back(to);
      }
  }
  return false;
}

// What can flow from source to sink along rising levels; no more than kNever is asked for.
uint64_t MinCut::push() {
  uint64_t flow = 0;
  uint32_t at = kSource;
  way_.clear();
  left_ = first_;
  for (;;) {
    if (at == kSink) {
      uint64_t least = kNever;
      for (uint32_t a : way_)
        least = std::min(least, arcs_[a].left);
      flow += least;
      if (flow >= kNever)
        return flow;
      size_t full = way_.size();
      for (size_t w = way_.size(); w-- > 0;) {
        arcs_[way_[w]].left -= least;
        arcs_[way_[w] ^ 1].left += least;
        if (!arcs_[way_[w]].left)
          full = w;
      }
      at = arcs_[way_[full] ^ 1].to;
      way_.resize(full);
      continue;
    }
    uint32_t &a = left_[at];
    while (a && !(arcs_[a].left && level_[arcs_[a].to] == level_[at] + 1))
      a = arcs_[a].next;
    if (a) {
      way_.push_back(a);
      at = arcs_[a].to;
    } else if (at == kSource) {
      return flow;
    } else {
      const uint32_t last = way_.back();
      way_.pop_back();
      at = arcs_[last ^ 1].to;
      left_[at] = arcs_[last].next;
    }
  }
}

bool MinCut::solve() {
  uint64_t flow = 0;
  while (reach()) {
    flow += push();
    if (flow >= kNever)
      return false;
  }
  return true; // level_ is that of the last, failed search
}

bool MinCut::is_cut(uint32_t node) const {
  return level_[in_of(node)] != kUnreached && level_[out_of(node)] == kUnreached;
}

} // namespace trace
