// What is asked of a graph at one point: values, liveness, kinds of edges, what hinders moving its code. On the
// routines of this very program, against the definitions of these things.

#include "binary/edges.h"
#include "binary/effects.h"
#include "binary/liveness.h"
#include "binary/obstacles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace {

using namespace binary;

// Understood routines of moderate size.
template <class Visit> void for_each_routine(Visit visit) {
  static const Program program{image::Executable(std::string("/proc/self/exe"))};
  Decoder decoder;
  size_t visited = 0;
  for (const Routine &routine : program.routines()) {
    if (routine.ranges.front().end - routine.ranges.front().begin < 200)
      continue;
    FlowGraph graph = flow_graph(program, routine, decoder, Calls::believed);
    if (graph.why_not != WhyNot::understood || graph.code.instructions.size() > 1500)
      continue;
    SCOPED_TRACE(routine.name());
    visit(routine, graph);
    if (++visited == 120)
      break;
  }
  EXPECT_GT(visited, 50u);
}

TEST(Queries, WhatIsReadIsLiveAndWhatIsReplacedIsNot) {
  size_t dead = 0;
  for_each_routine([&](const Routine &, const FlowGraph &graph) {
    Liveness liveness(graph);
    for (uint32_t b = 0; b < graph.blocks.size(); b++) {
      const Block &block = graph.blocks[b];
      if (block.is_dispatch())
        continue;
      EXPECT_EQ(liveness.at(b), liveness.before(b, block.first));
      for (uint32_t index = block.first; index < block.first + block.count; index++) {
        const Instruction &instruction = graph.code.instructions[index];
        Effects effects = effects_of(graph.code, instruction);
        VariableSet live = liveness.before(b, index);
        EXPECT_EQ(effects.reads & ~live, 0u);
        if (instruction.is_call() || instruction.repeats)
          continue;
        VariableSet replaced = effects.writes & ~effects.reads & ~bit(kMemory);
        EXPECT_EQ(replaced & live, 0u);
        dead += replaced != 0;
      }
      for (uint32_t to :
           block.successors) { // what lives behind an edge lives before it, or is made
        VariableSet made = 0;
        for (const Instruction &instruction : graph.instructions_of(block))
          made |= effects_of(graph.code, instruction).writes;
        EXPECT_EQ(liveness.at(to) & ~made & ~liveness.at(b), 0u);
      }
    }
  });
  EXPECT_GT(dead, 1000u);
}

TEST(Queries, EdgesAreThoseOfTheGraphAndBranchesHaveTwoKinds) {
  std::map<EdgeKind, size_t> kinds;
  for_each_routine([&](const Routine &, const FlowGraph &graph) {
    std::map<uint32_t, std::vector<EdgeKind>> from;
    for (const Edge &edge : edges_of(graph)) {
      kinds[edge.kind]++;
      from[edge.from].push_back(edge.kind);
      if (edge.kind != EdgeKind::label) {
        const auto &successors = graph.blocks[edge.from].successors;
        EXPECT_NE(std::find(successors.begin(), successors.end(), edge.to), successors.end());
      }
    }
    for (uint32_t b = 0; b < graph.blocks.size(); b++) {
      if (graph.blocks[b].is_dispatch() || graph.last_of(graph.blocks[b]).flow != Flow::branch ||
          graph.blocks[b].successors.size() != 2)
        continue;
      ASSERT_EQ(from[b].size(), 2u);
      EXPECT_NE(from[b][0], from[b][1]);
    }
  });
  for (EdgeKind kind : {EdgeKind::next, EdgeKind::jump, EdgeKind::taken, EdgeKind::not_taken})
    EXPECT_GT(kinds[kind], 50u) << edge_kind_name(kind);
}

TEST(Queries, InstructionsWithinOthersAreFound) {
  for_each_routine([&](const Routine &, const FlowGraph &graph) {
    EXPECT_FALSE(has_overlaps(graph));
    FlowGraph overlapping = graph;
    Instruction within = overlapping.code.instructions.front();
    within.address++;
    if (within.length > 1) {
      overlapping.code.instructions.push_back(within);
      EXPECT_TRUE(has_overlaps(overlapping));
    }
  });
}

TEST(Queries, TablesThatLeadElsewhereAreFound) {
  size_t tables = 0;
  for_each_routine([&](const Routine &routine, const FlowGraph &graph) {
    EXPECT_FALSE(has_shared_table(routine, graph));
    if (graph.tables.empty())
      return;
    tables++;
    FlowGraph shared = graph;
    shared.tables.back().targets.push_back(routine.ranges.back().end);
    EXPECT_EQ(has_shared_table(routine, shared), !routine.contains(routine.ranges.back().end));
  });
  EXPECT_GT(tables, 0u);
}

} // namespace
