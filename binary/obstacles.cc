// Overlaps are found among neighbours after sorting: if any two instructions overlap, two neighbours do.
//
// Of instructions that are not lifted, those count that write the base of a segment and no memory;
// so does a call of a function that sets one. System calls write both, as far as data flow knows,
// and are no obstacle but in a function that names arch_prctl.

#include "binary/obstacles.h"

#include <algorithm>

namespace binary {

bool has_overlaps(const FlowGraph &graph) {
  std::vector<std::pair<uint64_t, uint64_t>> all;
  all.reserve(graph.code.instructions.size());
  for (const Instruction &instruction : graph.code.instructions)
    all.emplace_back(instruction.address, instruction.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 1; i < all.size(); i++)
    if (all[i].first < all[i - 1].second)
      return true;
  return false;
}

bool has_shared_table(const Routine &routine, const FlowGraph &graph) {
  for (const JumpTable &table : graph.tables)
    if (std::any_of(table.targets.begin(), table.targets.end(),
                    [&](uint64_t target) { return !routine.contains(target); }))
      return true;
  return false;
}

bool changes_segments(const FlowGraph &graph) {
  for (const Instruction &instruction : graph.code.instructions) {
    const VariableSet writes = graph.code.touched_by(instruction).writes;
    if (instruction.moves_fs || (writes & (bit(kFs) | bit(kGs)) && !(writes & bit(kMemory))))
      return true;
  }
  return false;
}

} // namespace binary
