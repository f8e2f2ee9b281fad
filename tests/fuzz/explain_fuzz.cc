// Any bytes as an executable: from routines to the form of each address, all that is made of them ends,
// with a Failure or an answer, and what is said of one thing agrees with what is said of another.

#include "base/fail.h"
#include "binary/needed.h"
#include "binary/program.h"
#include "tests/fuzz/elf_bytes.h"

#include <algorithm>
#include <cstdlib>

namespace {

using namespace binary;

void require(bool holds) {
  if (!holds)
    std::abort();
}

void check_graph(const Routine &routine, const FlowGraph &graph) {
  require(graph.why_not != WhyNot::understood || !graph.entries.empty());
  size_t instructions = 0;
  for (uint32_t index = 0; index < graph.blocks.size(); index++) {
    const Block &block = graph.blocks[index];
    require(block.count > 0);
    require(block.first == instructions);
    instructions += block.count;
    for (uint32_t to : block.successors) {
      const auto &from = graph.blocks.at(to).predecessors;
      require(std::find(from.begin(), from.end(), index) != from.end());
    }
    for (const Instruction &instruction : graph.instructions_of(block)) {
      require(routine.contains(instruction.address));
      for (const Access &access : graph.code.accesses_of(instruction))
        require(!access.has_address() || access.uop - instruction.uop < instruction.uops);
    }
  }
  require(instructions == graph.code.instructions.size());
  for (const JumpTable &table : graph.tables)
    require(table.entries > 0 && !table.targets.empty() && table.targets.size() <= table.entries);
}

void check_forms(const FlowGraph &graph, const Ssa &ssa) {
  Forms forms(graph, ssa);
  std::vector<ExprId> addresses;
  for (uint32_t node = 0; node < ssa.nodes.size(); node++) {
    if (ssa.nodes[node].block == Node::kNoBlock || ssa.dominators.number[node] == Dominators::kNone)
      continue;
    uint32_t at = ssa.nodes[node].first_uop;
    for (const Instruction &instruction :
         graph.instructions_of(graph.blocks[ssa.nodes[node].block])) {
      for (const Access &access : graph.code.accesses_of(instruction))
        if (access.has_address()) {
          ExprId form =
              forms.address(node, at + access.uop - instruction.uop, graph.code.uops[access.uop]);
          require(form.v < forms.expressions().size());
          forms.affine(form, node);
          require(!forms.text(form).empty());
          addresses.push_back(form);
        }
      for (uint32_t i = 0; i < instruction.uops; i++)
        if (graph.code.uops[instruction.uop + i].op == ASSAY_UOP_branch)
          if (auto condition = forms.condition(node, at + i))
            require(!forms.text(*condition).empty());
      at += instruction.uops;
    }
  }
  for (const NeededDefinition &needed : needed_definitions(ssa, forms, addresses))
    require(needed.value.v < ssa.values.size() && !forms.name(needed.value).empty());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    Program program{image::Executable(fuzz::elf_bytes(data, size), "x")};
    Decoder decoder;
    for (const Routine &routine : program.routines()) {
      require(program.routine_at(routine.ranges.front().begin) == &routine);
      FlowGraph graph = flow_graph(program, routine, decoder);
      check_graph(routine, graph);
      Ssa ssa = single_assignment(graph);
      for (uint32_t node = 0; node < ssa.nodes.size(); node++)
        for (ValueId join : ssa.joins_of(node))
          for (ValueId operand : ssa.operands(join))
            require(operand.v < ssa.values.size());
      check_forms(graph, ssa);
    }
  } catch (const base::Failure &) {
  }
  return 0;
}
