// Where an indirect jump goes, if it goes through a table.
#pragma once

#include "binary/code.h"
#include "binary/flow_graph.h"
#include "image/executable.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

namespace binary {

// What is executed before a jump: instructions in order, and for those that are branches whether they
// were taken.
struct PathStep {
  uint32_t instruction; // in Code::instructions
  bool taken = false;
};

enum class JumpKind {
  unknown,
  table,   // `table` is known
  pointer, // through a pointer: leaves the routine, or goes to a label whose address was taken
};
struct ResolvedJump {
  JumpKind kind = JumpKind::unknown;
  JumpTable table;
};

// What general registers hold where a path begins, as far as they hold the same constant whichever
// way control came.
struct Constant {
  enum Kind : uint8_t {
    any,
    known,
    address,
    varies
  } kind = any; // address: a linked one plus the bias
  uint64_t value = 0;
  bool operator==(const Constant &) const = default;
};
using Constants = std::array<Constant, 16>;
// What they hold after an instruction.
void execute(const Code &code, const Instruction &instruction, Constants &constants);

struct Path {
  Constants before;
  std::vector<PathStep> steps; // the last is the jump
};

// As found on all paths: where the table lies, how its entries are read, how many there are.
struct TableShape {
  uint64_t address = 0;         // of entry 0 of the index
  uint64_t base = 0;            // added to entries of 4 bytes
  unsigned entry_bytes = 0;     // 4 or 8
  uint64_t first = 0, last = 0; // of the index, if bounded
  bool bounded = false;         // by a comparison on the way
  uint64_t most = UINT64_MAX;   // of the index, by its width or a mask
};
// nullopt: no table. `computed` is where the jump goes, less what is not known, if an address of the
// image is part of a sum without a load: into code, at a computed distance.
std::optional<TableShape> table_shape(const Code &code, const Path &path,
                                      std::optional<uint64_t> &computed);

// Each path ends with the jump. `is_target` says whether control may arrive at an address, as a table
// whose end is known says, or as one that is read as far as it makes sense; `limit` where a table must
// end at the latest.
template <class IsTarget, class Limit>
ResolvedJump resolve_jump(const image::Executable &executable, const Code &code,
                          std::span<const Path> paths, IsTarget is_target, Limit limit);

template <class IsTarget, class Limit>
ResolvedJump resolve_jump(const image::Executable &executable, const Code &code,
                          std::span<const Path> paths, IsTarget is_target, Limit limit) {
  constexpr uint64_t kMostEntries = 1 << 16;
  ResolvedJump result{JumpKind::pointer, {}};
  std::optional<TableShape> shape;
  for (const auto &path : paths) {
    std::optional<uint64_t> computed;
    auto found = table_shape(code, path, computed);
    if (computed && is_target(*computed, true))
      return {JumpKind::unknown, {}};
    if (!found)
      return result;
    if (!shape) {
      shape = found;
    } else if (shape->address != found->address || shape->base != found->base ||
               shape->entry_bytes != found->entry_bytes) {
      return {JumpKind::unknown, {}};
    } else if (shape->bounded && found->bounded) {
      shape->first = std::min(shape->first, found->first);
      shape->last = std::max(shape->last, found->last);
    } else {
      shape->bounded = false;
    }
  }
  if (!shape)
    return result;
  uint64_t first = shape->bounded ? shape->first : 0;
  uint64_t count = shape->bounded               ? shape->last - first + 1
                   : shape->most < kMostEntries ? shape->most + 1
                                                : kMostEntries;
  if (count > kMostEntries)
    return {JumpKind::unknown, {}};
  JumpTable &table = result.table;
  if (!shape->bounded)
    count = std::min(count, (limit(shape->address) - shape->address) / shape->entry_bytes);
  table.address = shape->address + first * shape->entry_bytes;
  table.entry_bytes = static_cast<uint8_t>(shape->entry_bytes);
  table.bounded = shape->bounded;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t at = table.address + i * shape->entry_bytes;
    std::optional<uint64_t> target;
    if (shape->entry_bytes == 8) {
      target = executable.relocated_word(at);
    } else if (auto entry = executable.read<int32_t>(at)) {
      target = shape->base + static_cast<uint64_t>(int64_t{*entry});
    }
    if (!target || !is_target(*target, shape->bounded)) {
      if (shape->bounded) {
        table.targets.clear();
        return {JumpKind::unknown, std::move(table)};
      }
      break;
    }
    table.targets.push_back(*target);
  }
  if (table.targets.empty())
    return {shape->entry_bytes == 8 ? JumpKind::pointer : JumpKind::unknown, {}};
  table.entries = static_cast<uint32_t>(table.targets.size());
  std::sort(table.targets.begin(), table.targets.end());
  table.targets.erase(std::unique(table.targets.begin(), table.targets.end()), table.targets.end());
  result.kind = JumpKind::table;
  return result;
}

} // namespace binary
