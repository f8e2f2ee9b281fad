// Snapshots are numbered without gaps, so a number that is not the next one is damage. Lines may come
// before their snapshot's own record; those of a snapshot that never came are left out.

#include "profile/read_working_set.h"

#include "base/byte_reader.h"

#include <algorithm>

namespace profile {
namespace {

constexpr uint64_t kMostLines = (1ULL << 47) / 32;
// Groups that one record may speak of: 256 GiB. More is not what a program touches between two flushes.
constexpr uint64_t kMostGroups = 1ULL << 26;

uint64_t read_number(base::ByteReader &reader) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    auto byte = reader.read<uint8_t>();
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128)
      return value;
  }
  base::fail("a number of more than 64 bits");
}

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
    if (gap > kMostLines || repeats >= kMostGroups || groups > kMostGroups ||
        (group += gap) + repeats > kMostLines / ASSAY_GROUP_LINES)
      base::fail("touched lines beyond the address space");
    for (uint64_t i = 0; i <= repeats; i++)
      f(group + i, planes);
    group += repeats;
  }
}

void WorkingSetReader::take(const AssayWorkingSetMode &record) {
  if (record.line_bytes < 32 || record.line_bytes > 64 || record.unit > ASSAY_TIME_MARKS)
    base::fail("bytes of a line, or unit of time");
  set_.emplace();
  owners_.clear();
  before_ = 0;
  set_->line_bytes = record.line_bytes;
  set_->unit = record.unit;
  set_->interval = record.interval;
}

void WorkingSetReader::take(const AssayWorkingSetSnapshot &record, std::string name) {
  if (!set_ || record.snapshot != before_ + set_->snapshots.size() + 1 || record.end < record.begin)
    base::fail("number of a snapshot");
  set_->snapshots.push_back(
      {record.begin, record.end, record.begin_us, record.end_us, std::move(name)});
}

uint32_t WorkingSetReader::snapshot_index(uint64_t number) const {
  if (!set_ || number == 0 || number > before_ + set_->snapshots.size() + 1)
    base::fail("number of a snapshot");
  return number > before_ ? static_cast<uint32_t>(number - before_ - 1) : 0;
}

void WorkingSetReader::take(const AssayWorkingSetLines &record, std::span<const std::byte> groups) {
  if (record.count == 0 || record.count > 8)
    base::fail("count of snapshots");
  if (record.first <= before_ && record.first > 0) // of before a reset
    return;
  TouchedLines lines = {snapshot_index(record.first),
                        static_cast<uint32_t>(record.count),
                        {groups.begin(), groups.end()}};
  each_group(lines, [](uint64_t, const uint64_t *) {});
  set_->lines.push_back(std::move(lines));
}

uint32_t WorkingSetReader::owner(uint64_t context) {
  if (context == 0 || context > UINT32_MAX)
    base::fail("context number");
  auto [known, is_new] =
      owners_.try_emplace(static_cast<uint32_t>(context), static_cast<uint32_t>(owners_.size()));
  if (is_new) {
    set_->owners.emplace_back();
    set_->owners.back().stack.v = static_cast<uint32_t>(context);
  }
  return known->second;
}

void WorkingSetReader::take(const AssayWorkingSetOwners &record, std::span<const std::byte> runs) {
  uint32_t snapshot = snapshot_index(record.snapshot);
  base::ByteReader reader(runs, "owners");
  uint64_t first = 0;
  while (!reader.at_end()) {
    uint64_t gap = read_number(reader), count = read_number(reader), context = read_number(reader);
    if (gap > kMostLines || (first += gap) > kMostLines || count > ASSAY_MOST_OWNED)
      base::fail("owned lines beyond the address space");
    set_->owned.push_back({snapshot, first, count, owner(context)});
  }
}

void WorkingSetReader::take(const AssayWorkingSetStack &record) {
  uint32_t snapshot = snapshot_index(record.snapshot);
  if (record.context == 0)
    base::fail("context number");
  if (record.snapshot <= before_)
    return;
  set_->stacks.push_back({snapshot, record.thread, StackId()});
  set_->stacks.back().stack.v = record.context;
}

void WorkingSetReader::take(const AssayRegion &record, std::string name) {
  if (record.end < record.start || record.kind > ASSAY_REGION_BREAK)
    base::fail("region");
  if (set_)
    set_->regions.push_back({record.start, record.end, record.kind, record.owner, std::move(name)});
}

void WorkingSetReader::reset() {
  if (!set_)
    return;
  before_ += set_->snapshots.size();
  set_->snapshots.clear();
  set_->lines.clear();
  set_->stacks.clear();
  for (OwnedLines &owned : set_->owned)
    owned.snapshot = 0;
}

std::optional<WorkingSet>
WorkingSetReader::finish(const std::function<LineOwner(uint32_t context)> &resolve) {
  if (!set_)
    return std::nullopt;
  std::unordered_map<uint32_t, LineOwner> known;
  auto owner_of = [&](StackId context) {
    auto [place, is_new] = known.try_emplace(context.v);
    if (is_new)
      place->second = resolve(context.v);
    return place->second;
  };
  for (LineOwner &owner : set_->owners)
    owner = owner_of(owner.stack);
  for (SnapshotStack &stack : set_->stacks)
    stack.stack = owner_of(stack.stack).stack;
  size_t snapshots = set_->snapshots.size();
  std::erase_if(set_->stacks, [&](const SnapshotStack &s) { return s.snapshot >= snapshots; });
  std::erase_if(set_->owned, [&](const OwnedLines &o) { return o.snapshot >= snapshots; });
  std::erase_if(set_->lines, [&](const TouchedLines &l) { return l.first + l.count > snapshots; });
  std::optional<WorkingSet> result = std::move(set_);
  set_.reset();
  return result;
}

} // namespace profile
