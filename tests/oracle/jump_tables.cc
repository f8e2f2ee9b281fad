// jump_tables FILE: what was understood of the indirect jumps of an executable, as JSON, to be compared
// with what its compiler says that it made (tests/explain/Inputs/switches.py).
//
//   {"routines": [{"name", "address", "why_not", "where",
//                  "tables": [{"jump", "address", "entries", "entry_bytes", "bounded", "targets"}],
//                  "jumps": [{"address", "to"}], "tail_jumps"}]}
//
// Addresses are numbers. `jumps` are the indirect jumps with the blocks that follow them.

#include "base/fail.h"
#include "binary/flow_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <vector>

namespace {

using namespace binary;

std::string list(const std::vector<uint64_t> &numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

std::string one(const Program &program, const Routine &routine, Decoder &decoder) {
  FlowGraph graph = flow_graph(program, routine, decoder);
  std::vector<std::string> tables, jumps;
  for (const JumpTable &table : graph.tables)
    tables.push_back(fmt::format(
        R"({{"jump":{},"address":{},"entries":{},"entry_bytes":{},"bounded":{},"targets":{}}})",
        table.jump, table.address, table.entries, table.entry_bytes, table.bounded,
        list(table.targets)));
  for (const Block &block : graph.blocks) {
    if (block.is_dispatch())
      continue;
    const Instruction &last = graph.last_of(block);
    if (last.flow != Flow::indirect_jump)
      continue;
    std::vector<uint64_t> to;
    for (uint32_t successor : block.successors)
      if (!graph.blocks[successor].is_dispatch())
        to.push_back(graph.instructions_of(graph.blocks[successor]).front().address);
      else
        for (uint32_t label : graph.blocks[successor].successors)
          to.push_back(graph.instructions_of(graph.blocks[label]).front().address);
    jumps.push_back(fmt::format(R"({{"address":{},"to":{}}})", last.address, list(to)));
  }
  return fmt::format(
      R"({{"name":"{}","address":{},"why_not":"{}","where":{},"tables":[{}],"jumps":[{}],"tail_jumps":{}}})",
      routine.name(), routine.address(), why_not_name(graph.why_not), graph.where,
      fmt::join(tables, ","), fmt::join(jumps, ","), list(graph.tail_jumps));
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: jump_tables FILE\n");
    return 2;
  }
  try {
    Program program{image::Executable(std::string(argv[1]))};
    Decoder decoder;
    std::vector<std::string> routines;
    for (const Routine &routine : program.routines())
      routines.push_back(one(program, routine, decoder));
    std::printf("{\"routines\":[%s]}\n", fmt::format("{}", fmt::join(routines, ",\n")).c_str());
    return 0;
  } catch (const base::Failure &failure) {
    std::fprintf(stderr, "jump_tables: %s\n", failure.what());
    return 2;
  }
}
