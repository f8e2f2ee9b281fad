// Each way round has an edge that leads back in the order of a depth-first walk. A check stands
// where such an edge leads to, unless nothing is logged on the ways from there to it: what may lead
// to the edge's begin without its end is looked at, which of a loop with one entry is the loop.
//
// A routine ends with a check, too: its caller logs on.

#include "trace/check_places.h"

#include "abi/trace_ring.h"
#include "binary/dominators.h"
#include "binary/effects.h"

#include <algorithm>

namespace trace {
namespace {

using binary::Block;
using binary::Flow;
using binary::FlowGraph;
using binary::Instruction;

// What is logged from one check to the next, at most, but for one block.
constexpr uint32_t kMuch = ASSAY_RING_SLACK / 4;
// So many steps are taken to find loops that log nothing; then they are taken to log.
constexpr size_t kMaxSteps = 1'000'000;

class Places {
public:
  Places(const FlowGraph &graph, const LoggedBlocks &logged)
      : graph_(graph), logged_(logged), number_(graph.blocks.size(), 0),
        seen_for_(graph.blocks.size(), 0) {
    number_blocks();
  }

  std::vector<bool> checks() {
    const size_t count = graph_.blocks.size();
    std::vector<bool> checks(count, false);
    std::vector<uint32_t> since(count,
                                0); // what is logged behind the last check, where a block ends
    for (uint32_t b : order_) {
      uint32_t before = 0;
      for (uint32_t from : graph_.blocks[b].predecessors)
        before = std::max(before, since[from]);
      checks[b] =
          !graph_.blocks[b].is_dispatch() && (before + logged_.bytes[b] > kMuch || must_check(b));
      since[b] = logged_.bytes[b] + (checks[b] ? 0 : before);
    }
    for (uint32_t entry : graph_.entries)
      checks[entry] = true;
    return checks;
  }

private:
  bool must_check(uint32_t b) {
    const Block &block = graph_.blocks[b];
    if (graph_.last_of(block).flow == Flow::ret)
      return true;
    const uint64_t address = graph_.instructions_of(block).front().address;
    for (uint32_t from : block.predecessors) {
      if (graph_.blocks[from].is_dispatch())
        return true; // any of the jumps behind it
      if (from == b && logged_.only_behind[b])
        continue;
      const Instruction &last = graph_.last_of(graph_.blocks[from]);
      if (binary::may_leave(graph_.code, last))
        return true; // behind it may be another thread, which has logged nothing yet
      if (last.is_call() && last.end() != address)
        return true; // a landing pad
      if (number_[from] >= number_[b] && is_logged_between(b, from))
        return true;
    }
    return false;
  }

  // Whether anything is logged on a way from `first` to `last`.
  bool is_logged_between(uint32_t first, uint32_t last) {
    if (logged_.bytes[first])
      return true;
    walks_++;
    seen_for_[first] = walks_;
    std::vector<uint32_t> work;
    auto add = [&](uint32_t b) {
      if (seen_for_[b] != walks_) {
        seen_for_[b] = walks_;
        work.push_back(b);
      }
    };
    add(last);
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      if (logged_.bytes[b] || ++steps_ > kMaxSteps)
        return true;
      for (uint32_t from : graph_.blocks[b].predecessors)
        add(from);
    }
    return false;
  }

  // Each block has a higher number than those that lead to it, but for edges that go back.
  void number_blocks() {
    const auto count = static_cast<uint32_t>(graph_.blocks.size());
    binary::Edges edges(count + 1);
    for (uint32_t b = 0; b < count; b++)
      edges[b] = graph_.blocks[b].successors;
    edges[count] = graph_.entries;
    for (uint32_t b = 0; b < count; b++) // also what nothing leads to that is known
      edges[count].push_back(b);
    order_ = binary::reverse_postorder(edges, count);
    order_.erase(order_.begin());
    for (uint32_t i = 0; i < order_.size(); i++)
      number_[order_[i]] = i;
  }

  const FlowGraph &graph_;
  const LoggedBlocks &logged_;
  std::vector<uint32_t> order_, number_;
  std::vector<uint32_t> seen_for_; // by block: the walk that came there last
  uint32_t walks_ = 0;
  size_t steps_ = 0;
};

} // namespace

std::vector<bool> check_places(const FlowGraph &graph, const LoggedBlocks &logged) {
  return Places(graph, logged).checks();
}

} // namespace trace
