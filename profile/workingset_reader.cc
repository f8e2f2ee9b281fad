// Ticks come without gaps, so a snapshot that does not begin where the last one ended is damage. Lines may
// come before their snapshot's own record, so all are placed at the end; those of a snapshot that never
// came are left out.

#include "profile/workingset_reader.h"

#include "profile/numbers.h"

#include "base/byte_reader.h"
#include "base/stable_sort.h"

#include <algorithm>

namespace profile {
namespace {

constexpr uint64_t kMaxTicks = 1ULL << 48;
constexpr uint64_t kMaxLines = (1ULL << 47) / 32;
// Groups that one record may speak of: 256 GiB. More is not what a program touches between two flushes.
constexpr uint64_t kMaxGroups = 1ULL << 26;

} // namespace

void each_group(const TouchedLines &lines,
                const std::function<void(uint64_t group, const uint64_t *planes)> &f) {
  base::ByteReader reader(lines.groups, "touched lines");
  uint64_t group = 0, groups = 0;
  while (!reader.at_end()) {
    uint64_t gap = read_number(reader), repeats = read_number(reader);
    auto changed = reader.read<uint8_t>();
    uint64_t planes[8] = {}, plane = 0;
    for (uint32_t i = 0; i < lines.count; i++) {
      if (changed >> i & 1)
        plane = reader.read<uint64_t>();
      planes[i] = plane;
    }
    groups += repeats + 1;
    if (gap > kMaxLines || repeats >= kMaxGroups || groups > kMaxGroups ||
        (group += gap) + repeats > kMaxLines / ASSAY_GROUP_LINES)
      base::fail("touched lines beyond the address space");
    for (uint64_t i = 0; i <= repeats; i++)
      f(group + i, planes);
    group += repeats;
  }
}

void WorkingSetReader::on(const AssayWorkingSetMode &record) {
  if ((record.line_bytes != 32 && record.line_bytes != 64) || record.unit > ASSAY_TIME_MARKS)
    base::fail("bytes of a line, or unit of time");
  *this = WorkingSetReader();
  exists_ = true;
  set_.line_bytes = record.line_bytes;
  set_.unit = record.unit;
  set_.interval = record.interval;
}

void WorkingSetReader::on(const AssayWorkingSetSnapshot &record, std::string name) {
  if (!exists_ || record.tick != next_tick_ || record.ticks == 0 || record.ticks > kMaxTicks ||
      record.end < record.begin)
    base::fail("ticks of a snapshot");
  if (!set_.snapshots.empty() && record.begin < set_.snapshots.back().end)
    base::fail("a snapshot that begins before the last one ended");
  first_ticks_.push_back(record.tick);
  next_tick_ += record.ticks;
  set_.snapshots.push_back(
      {record.begin, record.end, record.begin_us, record.end_us, std::move(name)});
}

std::optional<uint32_t> WorkingSetReader::snapshot_of(uint64_t tick) const {
  auto after = std::upper_bound(first_ticks_.begin(), first_ticks_.end(), tick);
  if (after == first_ticks_.begin() || tick >= next_tick_)
    return std::nullopt;
  return static_cast<uint32_t>(after - first_ticks_.begin() - 1);
}

void WorkingSetReader::on(const AssayWorkingSetLines &record, std::span<const std::byte> groups) {
  if (!exists_ || record.count == 0 || record.count > 8 || record.tick == 0 || record.ticks == 0 ||
      record.ticks > kMaxTicks)
    base::fail("ticks of touched lines");
  TouchedLines lines = {0, static_cast<uint32_t>(record.count), {groups.begin(), groups.end()}};
  each_group(lines, [](uint64_t, const uint64_t *) {});
  lines_.push_back({record.tick, record.ticks, std::move(lines)});
}

uint32_t WorkingSetReader::owner(uint64_t context) {
  if (context == 0 || context > UINT32_MAX)
    base::fail("context number");
  auto [known, is_new] =
      owners_.try_emplace(static_cast<uint32_t>(context), static_cast<uint32_t>(owners_.size()));
  if (is_new) {
    set_.owners.emplace_back();
    set_.owners.back().stack.v = static_cast<uint32_t>(context);
  }
  return known->second;
}

void WorkingSetReader::on(const AssayWorkingSetOwners &record, std::span<const std::byte> runs) {
  if (!exists_)
    base::fail("owners of no working set");
  base::ByteReader reader(runs, "owners");
  uint64_t first = 0;
  while (!reader.at_end()) {
    uint64_t gap = read_number(reader), count = read_number(reader), context = read_number(reader);
    if (gap > kMaxLines || (first += gap) > kMaxLines || count > ASSAY_MOST_OWNED)
      base::fail("owned lines beyond the address space");
    owned_.push_back({record.tick, {0, first, count, owner(context)}});
  }
}

void WorkingSetReader::on(const AssayWorkingSetStack &record) {
  if (!exists_ || record.context == 0)
    base::fail("context number");
  StackId context;
  context.v = record.context;
  stacks_.push_back({record.tick, {0, record.thread, context}});
}

void WorkingSetReader::on(const AssayRegion &record, std::string name) {
  if (record.end < record.start || record.kind > ASSAY_REGION_BREAK)
    base::fail("region");
  if (exists_)
    set_.regions.push_back({record.start, record.end, record.kind, record.owner, std::move(name)});
}

void WorkingSetReader::reset() {
  if (!exists_)
    return;
  set_.snapshots.clear();
  first_ticks_.clear();
  lines_.clear();
  stacks_.clear();
}

// Planes are those of consecutive snapshots; a record whose snapshots were cut off is left out.
void WorkingSetReader::place_lines() {
  for (Lines &each : lines_) {
    uint64_t count = each.lines.count;
    auto first = snapshot_of(each.tick), last = snapshot_of(each.tick + (count - 1) * each.ticks);
    if (first && last && *last - *first == count - 1) {
      each.lines.first = *first;
      set_.lines.push_back(std::move(each.lines));
    }
  }
  base::stable_sort(set_.lines,
                    [](const TouchedLines &a, const TouchedLines &b) { return a.first < b.first; });
}

std::optional<WorkingSet>
WorkingSetReader::finish(const std::function<OwnerSite(uint32_t context)> &resolve) {
  if (!exists_)
    return std::nullopt;
  std::unordered_map<uint32_t, OwnerSite> known;
  auto owner_of = [&](StackId context) {
    auto [place, is_new] = known.try_emplace(context.v);
    if (is_new)
      place->second = resolve(context.v);
    return place->second;
  };
  for (OwnerSite &owner : set_.owners)
    owner = owner_of(owner.stack);
  place_lines();
  for (Owned &each : owned_) {
    each.lines.snapshot = snapshot_of(each.tick).value_or(0); // before a reset: from the start
    if (each.tick < next_tick_)
      set_.owned.push_back(each.lines);
  }
  for (Stack &each : stacks_)
    if (auto snapshot = snapshot_of(each.tick)) {
      each.stack.snapshot = *snapshot;
      each.stack.stack = owner_of(each.stack.stack).stack;
      set_.stacks.push_back(each.stack);
    }
  exists_ = false;
  return std::move(set_);
}

} // namespace profile
