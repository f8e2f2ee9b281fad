// See the header.

#include "analyze/explain_graph.h"

#include "binary/edges.h"
#include "binary/liveness.h"

namespace analyze {
namespace {

using namespace binary;

// General registers and flags: what code that is put there would have to save.
std::vector<std::string> names_of(VariableSet live) {
  static constexpr const char *kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp",  "rbp",
                                           "rsi", "rdi", "r8",  "r9",  "r10",  "r11",
                                           "r12", "r13", "r14", "r15", "flags"};
  std::vector<std::string> names;
  for (unsigned variable = 0; variable <= kFlags; variable++)
    if (live & bit(variable))
      names.emplace_back(kNames[variable]);
  return names;
}

} // namespace

void explain_graph(const FlowGraph &graph, ExplainedFunction &function) {
  Liveness liveness(graph);
  auto address_of = [&](uint32_t block) {
    return graph.instructions_of(graph.blocks[block]).front().address;
  };
  for (uint32_t block = 0; block < graph.blocks.size(); block++)
    if (!graph.blocks[block].is_dispatch())
      function.blocks.push_back(
          {address_of(block), graph.blocks[block].count, names_of(liveness.at(block))});
  for (const Edge &edge : edges_of(graph))
    function.edges.push_back(
        {address_of(edge.from), address_of(edge.to), edge_kind_name(edge.kind)});
  for (const JumpTable &table : graph.tables) {
    ExplainedTable shown{table.jump, table.address, table.entry_bytes, table.bounded, {}};
    for (uint64_t target : table.in_order)
      shown.entries.push_back(target == JumpTable::kHole ? std::nullopt : std::optional(target));
    function.tables.push_back(std::move(shown));
  }
}

} // namespace analyze
