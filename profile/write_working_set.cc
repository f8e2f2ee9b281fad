// A record for each thing that was one: what is read back is what was written.

#include "profile/write_working_set.h"

namespace profile {
namespace {

void put_number(std::vector<std::byte> &to, uint64_t n) {
  for (; n >= 128; n >>= 7)
    to.push_back(std::byte(n | 128));
  to.push_back(std::byte(n));
}

// Runs of one snapshot come by ascending first line in each record.
void write_owned(const WorkingSet &set, ContainerWriter &out,
                 const std::function<uint32_t(const LineOwner &)> &context_of) {
  std::vector<std::byte> runs;
  for (size_t i = 0; i < set.owned.size(); i++) {
    const OwnedLines &owned = set.owned[i];
    uint32_t context = context_of(set.owners[owned.owner]);
    put_number(runs, runs.empty() ? owned.first : owned.first - set.owned[i - 1].first);
    put_number(runs, owned.count);
    put_number(runs, context);
    const OwnedLines *next = i + 1 < set.owned.size() ? &set.owned[i + 1] : nullptr;
    if (next && next->snapshot == owned.snapshot && next->first >= owned.first &&
        runs.size() < (64 << 10))
      continue;
    out.record(ASSAY_RECORD_WorkingSetOwners, AssayWorkingSetOwners{owned.snapshot + 1ULL}, runs);
    runs.clear();
  }
}

} // namespace

void write_working_set(const WorkingSet &set, ContainerWriter &out,
                       const std::function<uint32_t(const LineOwner &)> &context_of) {
  out.record(ASSAY_RECORD_WorkingSetMode,
             AssayWorkingSetMode{set.line_bytes, set.unit, set.interval});
  for (size_t i = 0; i < set.snapshots.size(); i++) {
    const Snapshot &s = set.snapshots[i];
    out.record(ASSAY_RECORD_WorkingSetSnapshot,
               AssayWorkingSetSnapshot{i + 1, 1, s.begin, s.end, s.begin_us, s.end_us},
               std::as_bytes(std::span(s.name)));
  }
  for (const TouchedLines &lines : set.lines)
    out.record(ASSAY_RECORD_WorkingSetLines,
               AssayWorkingSetLines{lines.first + 1ULL, 1, lines.count}, lines.groups);
  write_owned(set, out, context_of);
  for (const SnapshotStack &stack : set.stacks)
    out.record(ASSAY_RECORD_WorkingSetStack,
               AssayWorkingSetStack{stack.snapshot + 1ULL, stack.thread,
                                    context_of({stack.stack, TypeId(), {}})});
  for (const Region &region : set.regions)
    out.record(ASSAY_RECORD_Region,
               AssayRegion{region.start, region.end, 1, region.kind, region.owner},
               string_tail(std::span(&region.name, 1)));
}

} // namespace profile
