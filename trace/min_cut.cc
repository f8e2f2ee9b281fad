// Ways are pushed along without recursion: a chain of definitions may be as long as its function.
//
// Nodes have prices, but flow goes along arcs. So a node is two with an arc of its price between
// them, and edges cost more than is ever paid. Each search gives the nodes their levels, and ways
// are pushed along rising levels until none is left; next_ remembers which arcs of a node lead
// nowhere. After the search that fails, the cut is the nodes that were reached but not passed: the
// first ones on the ways from the sources.

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

void MinCut::arc(uint32_t from, uint32_t to, uint64_t capacity) {
  const auto first = static_cast<uint32_t>(arcs_.size());
  arcs_.push_back({to, first + 1, capacity});
  arcs_.push_back({from, first, 0});
  arcs_of_[from].push_back(first);
  arcs_of_[to].push_back(first + 1);
}

uint32_t MinCut::node(uint64_t price) {
  const auto number = static_cast<uint32_t>(arcs_of_.size() / 2 - 1);
  arcs_of_.resize(arcs_of_.size() + 2);
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
  level_.assign(arcs_of_.size(), kUnreached);
  std::vector<uint32_t> work = {kSource};
  level_[kSource] = 0;
  for (size_t w = 0; w < work.size(); w++)
    for (uint32_t a : arcs_of_[work[w]])
      if (arcs_[a].left && level_[arcs_[a].to] == kUnreached) {
        level_[arcs_[a].to] = level_[work[w]] + 1;
        work.push_back(arcs_[a].to);
      }
  return level_[kSink] != kUnreached;
}

// One way from source to sink along rising levels; 0 if there is none any more.
uint64_t MinCut::push() {
  std::vector<uint32_t> way;
  uint32_t at = kSource;
  while (at != kSink) {
    bool went = false;
    for (; next_[at] < arcs_of_[at].size(); next_[at]++) {
      const uint32_t a = arcs_of_[at][next_[at]];
      if (!arcs_[a].left || level_[arcs_[a].to] != level_[at] + 1)
        continue;
      way.push_back(a);
      at = arcs_[a].to;
      went = true;
      break;
    }
    if (went)
      continue;
    if (at == kSource)
      return 0;
    at = arcs_[arcs_[way.back()].back].to;
    way.pop_back();
    next_[at]++;
  }
  uint64_t least = kNever;
  for (uint32_t a : way)
    least = std::min(least, arcs_[a].left);
  for (uint32_t a : way) {
    arcs_[a].left -= least;
    arcs_[arcs_[a].back].left += least;
  }
  return least;
}

bool MinCut::solve() {
  uint64_t flow = 0;
  while (reach()) {
    next_.assign(arcs_of_.size(), 0);
    while (const uint64_t more = push()) {
      flow += more;
      if (flow >= kNever)
        return false;
    }
  }
  return true; // level_ is that of the last, failed search
}

bool MinCut::is_cut(uint32_t node) const {
  return level_[in_of(node)] != kUnreached && level_[out_of(node)] == kUnreached;
}

} // namespace trace
