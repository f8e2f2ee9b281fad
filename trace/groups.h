// What is logged of a routine: groups of accesses that are made together, and the values that their
// addresses follow from.
//
// A group is a stretch of one block without a call. Within it the contents of general registers are
// followed through copies and sums with constants; so most accesses share a few values, and what
// lies at a constant address needs none. A value is logged where the register that holds it is
// certain to hold it; the last one, or the first access of a group without values, says that the
// group has been executed.
#pragma once

#include "binary/flow_graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trace {

// One term of an address: a logged value, less what the register had beyond it, times 1, 2, 4 or 8.
struct AddressTerm {
  uint8_t value = 0; // of the group
  uint8_t shift = 0;
};

// An access, once its group's values are known: the sum of the terms, the offset, and the bases.
struct GroupAccess {
  static constexpr uint8_t kOnce = UINT8_MAX;
  uint64_t pc = 0; // linked
  int64_t offset = 0;
  uint16_t size = 0;
  bool write = false;
  bool in_image = false;      // plus the module's load bias
  bool thread_local_ = false; // plus the base of fs
  uint8_t terms = 0;
  AddressTerm term[2];
  // A repeated string instruction: made so often as value `times` says, less value `left` if that
  // is not kOnce; each `size` further than the last. Accesses of one instruction take turns.
  uint8_t times = kOnce, left = kOnce;
};

// One value of a group.
struct GroupValue {
  uint32_t before =
      0; // logged before this instruction of the graph's code, or behind the block's last one
  uint8_t reg = 0; // of 16 general registers; or, if `access` is known, scratch
  // The address itself is computed: of this access, as numbered in Code::accesses.
  uint32_t access = binary::Access::kNoAddress;
  bool saved = false; // what `reg` was before the loop
};

// A loop of one block, all of whose iterations are one group, logged behind it. Value 0 is what the
// counter was before the loop, the others are registers as the loop leaves them; each is `steps`
// more in each iteration.
struct LoopOfGroup {
  uint8_t counter = 0; // of the values: one with a step; the register that value 0 was before
  std::vector<int64_t> steps; // by value; of value 0 zero
};

// A group that begins the run of a skeleton: its values are those of registers there, and what the
// skeleton takes further follows in the stream.
struct StartOfGroup {
  uint32_t skeleton = 0; // of the file
  uint32_t block = 0;    // of the skeleton
};

struct Group {
  uint32_t commit = 0; // the instruction before which it is complete
  std::optional<LoopOfGroup> loop;
  std::optional<StartOfGroup> start;
  std::vector<GroupValue> values; // by `before`
  std::vector<GroupAccess> accesses;
  uint32_t bytes() const { return 4 + 8 * static_cast<uint32_t>(values.size()); }
};

// Of a block that is a loop by itself: one group for all iterations; nullopt if its addresses do not go up evenly.
std::optional<Group> loop_group_of(const binary::FlowGraph &graph, const binary::Block &block);
// Of one block, by commit.
std::vector<Group> groups_of(const binary::FlowGraph &graph, const binary::Block &block);
// The same accesses, each a group of its own with its address for a value: what tracers do without
// analysis, and what the groups are compared with.
std::vector<Group> single_accesses(const binary::FlowGraph &graph, const binary::Block &block);

} // namespace trace
