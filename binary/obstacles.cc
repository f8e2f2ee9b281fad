// The questions stand in the order in which they rest on each other: where the control flow is not
// known, the graph answers none of the others. This answer is for a move that overwrites only the
// routine's first instruction, so labels and further entries are obstacles. trace/moved_code.cc
// overwrites those too, and asks the parts by themselves.
//
// Overlaps are found among neighbours after sorting: if any two instructions overlap, two neighbours do.
//
// Of instructions that are not lifted, those count that write the base of a segment and no memory;
// so does a call of a function that sets one. System calls write both, as far as data flow knows,
// and are no obstacle but in a function that names arch_prctl.

#include "binary/eligibility.h"

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

const char *immovable_name(Immovable why) {
  switch (why) {
  case Immovable::movable: return "movable";
  case Immovable::not_understood: return "not_understood";
  case Immovable::labels: return "labels";
  case Immovable::entered_within: return "entered_within";
  case Immovable::overlaps: return "overlaps";
  case Immovable::shared_table: return "shared_table";
  case Immovable::changes_segments: return "changes_segments";
  case Immovable::too_short: return "too_short";
  }
  return "";
}

const char *immovable_meaning(Immovable why) {
  switch (why) {
  case Immovable::movable: return "its code can be moved";
  case Immovable::not_understood: return "its control flow is not known";
  case Immovable::labels: return "it jumps through pointers to labels of its own";
  case Immovable::entered_within: return "it is entered at more than one place";
  case Immovable::overlaps: return "one of its instructions begins within another";
  case Immovable::shared_table: return "a jump table leads out of it";
  case Immovable::changes_segments: return "it sets the base of thread-local storage";
  case Immovable::too_short: return "there is no room for a jump to the moved code";
  }
  return "";
}

Immovable eligibility(const Routine &routine, const FlowGraph &graph) {
  constexpr uint64_t kJumpBytes = 5;
  if (graph.why_not != WhyNot::understood)
    return Immovable::not_understood;
  if (std::any_of(graph.blocks.begin(), graph.blocks.end(),
                  [](const Block &block) { return block.is_dispatch(); }))
    return Immovable::labels;
  if (routine.entries.size() > 1)
    return Immovable::entered_within;
  if (has_shared_table(routine, graph))
    return Immovable::shared_table;
  if (has_overlaps(graph))
    return Immovable::overlaps;
  if (changes_segments(graph))
    return Immovable::changes_segments;
  for (const image::CodeRange &range : routine.ranges)
    if (range.begin == routine.address() && range.end - range.begin < kJumpBytes)
      return Immovable::too_short;
  return Immovable::movable;
}

} // namespace binary
