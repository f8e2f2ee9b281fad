// Where an indirect jump goes, if it goes through a table.
#pragma once

#include "binary/code.h"
#include "binary/flow_graph.h"
#include "binary/symbolic_path.h"
#include "image/executable.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace binary {

enum class JumpKind {
  unknown,
  table,   // `table` is known
  pointer, // through a pointer: leaves the routine, or goes to a label whose address was taken
};
struct ResolvedJump {
  JumpKind kind = JumpKind::unknown;
  JumpTable table = {};
  // Where a table surely begins: this one, or the one of which it is a few entries, where the index is known better.
  std::optional<uint64_t> begin = {};
};

// As found on all paths: where the table lies, how its entries are read, how many there are.
struct TableShape {
  uint64_t address = 0;         // of entry 0 of the index
  uint64_t label = 0;           // what the instruction that reads it has for an address
  uint64_t base = 0;            // added to entries of 4 bytes
  unsigned entry_bytes = 0;     // 4 or 8
  uint64_t first = 0, last = 0; // of the index, if bounded
  bool bounded = false;         // by a comparison on the way
  uint64_t most = UINT64_MAX;   // of the index, by its width or a mask
};

// Of one path, which `way` executes; nullopt: no table. `computed` is where the jump goes, less what is not known,
// if an address of the image is part of a sum without a load: into code, at a computed distance.
std::optional<TableShape> table_shape(SymbolicPath &way, const Path &path,
                                      std::optional<uint64_t> &computed);

// Each path ends with the jump. `is_target` says whether control may arrive at an address, as a table
// whose end is known says, or as one that is read as far as it makes sense; `is_hole` whether an entry
// may be one that no index leads to; `limit` where a table must end at the latest.
template <class IsTarget, class IsHole, class Limit>
ResolvedJump resolve_jump(SymbolicPath &way, std::span<const Path> paths, IsTarget is_target,
                          IsHole is_hole, Limit limit);

// The shape that all paths have. False: no table; `unknown` then says whether nothing is known, or
// the jump goes through a pointer.
inline bool common_shape(SymbolicPath &way, std::span<const Path> paths, auto is_target,
                         TableShape &shape, bool &unknown) {
  bool first = true;
  unknown = false;
  for (const auto &path : paths) {
    std::optional<uint64_t> computed;
    auto found = table_shape(way, path, computed);
    if (computed && is_target(*computed, true))
      unknown = true;
    if (unknown || !found)
      return false;
    if (first) {
      shape = *found;
    } else if (shape.address != found->address || shape.base != found->base ||
               shape.label != found->label || shape.entry_bytes != found->entry_bytes) {
      unknown = true;
      return false;
    } else if (shape.bounded && found->bounded) {
      shape.first = std::min(shape.first, found->first);
      shape.last = std::max(shape.last, found->last);
    } else {
      shape.bounded = false;
      shape.most = std::max(shape.most, found->most);
    }
    first = false;
  }
  return !first;
}

// Where an entry leads.
inline std::optional<uint64_t> table_entry(const image::Executable &executable,
                                           const TableShape &shape, uint64_t at) {
  if (shape.entry_bytes == 8)
    return executable.relocated_word(at);
  auto entry = executable.read<int32_t>(at);
  return entry ? std::optional(shape.base + static_cast<uint64_t>(int64_t{*entry})) : std::nullopt;
}

// Where a table begins whose index nothing bounds: at the address that its load has, whatever the
// index has been added to it. Compilers subtract the least index from that, so there may be no entry.
inline uint64_t table_begin(const image::Executable &executable, const TableShape &shape,
                            auto is_target) {
  constexpr uint64_t kFurthest = 1 << 12, kMinIndex = 64;
  uint64_t bytes = shape.entry_bytes, at = shape.address;
  if ((shape.label - at) % bytes == 0 && shape.label - at + kFurthest < 2 * kFurthest)
    at = shape.label;
  for (uint64_t skipped = 0; skipped < kMinIndex; skipped++) {
    auto target = table_entry(executable, shape, at + skipped * bytes);
    if (target && is_target(*target, false))
      return at + skipped * bytes;
  }
  return at;
}

// A few bits index it, and each entry that these can name leads somewhere, or is 0, which nobody jumps to.
inline bool is_bounded_by_bits(const image::Executable &executable, const TableShape &shape,
                               auto is_target) {
  constexpr uint64_t kMaxEntries = 64;
  bool any = false;
  for (uint64_t i = 0; i <= shape.most; i++) {
    if (i == kMaxEntries)
      return false;
    auto target = table_entry(executable, shape, shape.address + i * shape.entry_bytes);
    const bool leads = target && is_target(*target, false);
    if (!leads && !(target == 0 && shape.entry_bytes == 8))
      return false;
    any |= leads;
  }
  return any;
}

template <class IsTarget, class IsHole, class Limit>
ResolvedJump resolve_jump(SymbolicPath &way, std::span<const Path> paths, IsTarget is_target,
                          IsHole is_hole, Limit limit) {
  const image::Executable &executable = way.executable();
  constexpr uint64_t kMaxEntries = 1 << 16;
  TableShape shape;
  bool unknown = false;
  if (!common_shape(way, paths, is_target, shape, unknown))
    return {unknown ? JumpKind::unknown : JumpKind::pointer};
  if (!shape.bounded && is_bounded_by_bits(executable, shape, is_target)) {
    shape.first = 0;
    shape.last = shape.most;
    shape.bounded = true;
  }
  ResolvedJump result{JumpKind::table};
  JumpTable &table = result.table;
  uint64_t bytes = shape.entry_bytes, count = kMaxEntries;
  table.entry_bytes = static_cast<uint8_t>(bytes);
  table.bounded = shape.bounded;
  if (shape.bounded) {
    table.address = shape.address + shape.first * bytes;
    count = shape.last - shape.first + 1;
    if (count > kMaxEntries)
      return {JumpKind::unknown};
  } else {
    table.address = table_begin(executable, shape, is_target);
    uint64_t end = shape.address + (shape.most + 1) * bytes; // if it is known
    if (shape.most < kMaxEntries && end - table.address < kMaxEntries * bytes)
      count = (end - table.address) / bytes;
    count = std::min(count, (limit(table.address) - table.address) / bytes);
  }
  for (uint64_t i = 0; i < count; i++) {
    auto target = table_entry(executable, shape, table.address + i * bytes);
    if (target && is_target(*target, shape.bounded)) {
      table.in_order.push_back(*target);
    } else if (target && (is_hole(*target) || (shape.bounded && bytes == 8 && *target == 0))) {
      table.in_order.push_back(JumpTable::kHole);
    } else if (shape.bounded) {
      table.in_order.clear();
      return {JumpKind::unknown, std::move(table)};
    } else {
      break;
    }
  }
  while (!shape.bounded && !table.in_order.empty() && table.in_order.back() == JumpTable::kHole)
    table.in_order.pop_back();
  table.targets = table.in_order;
  std::sort(table.targets.begin(), table.targets.end());
  table.targets.erase(std::unique(table.targets.begin(), table.targets.end()), table.targets.end());
  if (!table.targets.empty() && table.targets.back() == JumpTable::kHole)
    table.targets.pop_back();
  if (table.targets.empty())
    return {bytes == 8 ? JumpKind::pointer : JumpKind::unknown};
  table.entries = static_cast<uint32_t>(table.in_order.size());
  // Compilers make entries of 4 bytes relative to where the table begins.
  if (bytes == 4 && shape.base && shape.base <= table.address)
    result.begin = shape.base;
  if (bytes == 8 && shape.bounded && shape.label == table.address)
    result.begin = shape.label;
  return result;
}

} // namespace binary
