// On random graphs, compared with what each way may log: the edges that lead to no check form no
// way round that logs, and no way that logs more than there is room for.

#include "trace/check_places.h"

#include "abi/trace_ring.h"
#include "tests/unit/binary/random_graph.h"

#include <gtest/gtest.h>

#include <functional>

namespace trace {
namespace {

binary::FlowGraph graph_of(const binary::Edges &edges) {
  binary::FlowGraph graph;
  graph.blocks.resize(edges.size());
  graph.entries = {0};
  for (uint32_t b = 0; b < edges.size(); b++) {
    binary::Instruction instruction;
    instruction.address = 0x1000 + 16 * b;
    instruction.length = 16;
    instruction.flow = edges[b].empty()       ? binary::Flow::ret
                       : edges[b].size() == 1 ? binary::Flow::jump
                                              : binary::Flow::branch;
    graph.code.instructions.push_back(instruction);
    graph.blocks[b].first = b;
    graph.blocks[b].count = 1;
    graph.blocks[b].successors = edges[b];
    for (uint32_t to : edges[b])
      graph.blocks[to].predecessors.push_back(b);
  }
  return graph;
}

// The most that ways into `b` without a check log, `b` included; the walk stands on those in `on_way`.
uint64_t most_to(const binary::FlowGraph &graph, const std::vector<bool> &checks,
                 const LoggedBlocks &logged, uint32_t b, std::vector<bool> &on_way,
                 uint64_t behind) {
  behind += logged.bytes[b];
  uint64_t most = behind;
  if (checks[b])
    return most;
  on_way[b] = true;
  for (uint32_t from : graph.blocks[b].predecessors)
    if (!on_way[from])
      most = std::max(most, most_to(graph, checks, logged, from, on_way, behind));
  on_way[b] = false;
  return most;
}

// Whether a way from `at` without checks comes back to `first` and logs something.
bool logs_round(const binary::FlowGraph &graph, const std::vector<bool> &checks,
                const LoggedBlocks &logged, uint32_t first) {
  std::vector<bool> seen(2 * graph.blocks.size(),
                         false); // by block, and whether something was logged before
  std::function<bool(uint32_t, bool)> from = [&](uint32_t b, bool any) {
    any |= logged.bytes[b] > 0;
    if (seen[2 * b + any])
      return false;
    seen[2 * b + any] = true;
    for (uint32_t to : graph.blocks[b].successors) {
      if (checks[to])
        continue;
      if ((to == first && any) || from(to, any))
        return true;
    }
    return false;
  };
  return !checks[first] && from(first, false);
}

TEST(CheckPlaces, LeaveNoWayRoundAndNoneThatIsTooLong) {
  std::mt19937_64 random(5);
  int without = 0, graphs = 0;
  for (int i = 0; i < 3000; i++) {
    const binary::FlowGraph graph = graph_of(binary_test::random_graph(random));
    LoggedBlocks logged;
    uint32_t largest = 0;
    for (uint32_t b = 0; b < graph.blocks.size(); b++) {
      constexpr uint32_t kBytes[] = {0, 0, 0, 4, 100, 9000};
      logged.bytes.push_back(kBytes[binary_test::below(random, std::size(kBytes))]);
      largest = std::max(largest, logged.bytes.back());
    }
    logged.only_behind.assign(graph.blocks.size(), false);
    const std::vector<bool> checks = check_places(graph, logged);
    ASSERT_TRUE(checks[0]);
    for (uint32_t b = 0; b < graph.blocks.size(); b++) {
      EXPECT_FALSE(logs_round(graph, checks, logged, b)) << i << " " << b;
      without += !checks[b] && !graph.blocks[b].predecessors.empty();
    }
    if (graph.blocks.size() > 14) // ways grow with the power of blocks
      continue;
    graphs++;
    for (uint32_t b = 0; b < graph.blocks.size(); b++) {
      std::vector<bool> on_way(graph.blocks.size(), false);
      EXPECT_LE(most_to(graph, checks, logged, b, on_way, 0), ASSAY_RING_SLACK / 4 + largest)
          << i << " " << b;
    }
  }
  EXPECT_GT(without, 5000);
  EXPECT_GT(graphs, 300);
}

TEST(CheckPlaces, LoopsThatLogNothingHaveNone) {
  // 0 → 1 ⇄ 2, 2 → 3, which is a loop that logs behind it.
  const binary::FlowGraph graph = graph_of({{1}, {2}, {1, 3}, {3, 4}, {}});
  LoggedBlocks logged = {{4, 0, 0, 8, 0}, {false, false, false, true, false}};
  EXPECT_EQ(check_places(graph, logged), std::vector<bool>({true, false, false, false, true}));
  logged.bytes[2] = 1;
  EXPECT_EQ(check_places(graph, logged), std::vector<bool>({true, true, false, false, true}));
}

} // namespace
} // namespace trace
