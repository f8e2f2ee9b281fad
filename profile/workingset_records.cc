// The records of the working set: read by WorkingSetReader, written back one for each thing that was one.
//
// A working set belongs to one process and is not added up: the sums only translate ids. Owners are
// contexts of the file, so what is read is kept by the number of its process, and finished when the
// contexts are known.
//
// Lines of owners are written as differences that are never negative. So a record ends where the
// next run begins further down or belongs to another snapshot, and after 64 KiB.

#include "profile/merge.h"
#include "profile/numbers.h"
#include "profile/tool.h"
#include "profile/workingset_reader.h"

#include <unordered_map>

namespace profile {
namespace {

using Bytes = std::span<const std::byte>;

class Reader : public ToolReader {
public:
  bool take(const RecordView &record, Process &) override { return dispatch(*this, record); }

  void on(const AssayWorkingSetMode &r, Bytes) { of_process_.on(r); }
  void on(const AssayWorkingSetSnapshot &r, Bytes tail) { of_process_.on(r, read_text(tail)); }
  void on(const AssayWorkingSetLines &r, Bytes tail) { of_process_.on(r, tail); }
  void on(const AssayWorkingSetOwners &r, Bytes tail) { of_process_.on(r, tail); }
  void on(const AssayWorkingSetStack &r, Bytes) { of_process_.on(r); }
  void on(const AssayRegion &r, Bytes tail) {
    auto names = read_strings(tail);
    of_process_.on(r, names.empty() ? "" : names.front());
  }

  void reset(Process &) override { of_process_.reset(); }

  void end_process_records(Process &) override {
    if (of_process_.exists())
      of_processes_[processes_] = std::move(of_process_);
    of_process_ = WorkingSetReader();
    processes_++;
  }

  void resolve(FileNumbers &numbers, Assembler &output) override {
    for (auto &[process, reader] : of_processes_)
      output.profile().processes[process].workingset = reader.finish([&](uint32_t context) {
        auto [stack, type, origin] = numbers.context(context);
        return OwnerSite{stack, type, origin};
      });
  }

private:
  WorkingSetReader of_process_;
  std::map<size_t, WorkingSetReader> of_processes_; // by index of the process
  size_t processes_ = 0;
};

class Sums : public ToolSums {
public:
  void translate(Process &process, const NewIds &ids) override {
    if (!process.workingset)
      return;
    for (OwnerSite &owner : process.workingset->owners) {
      ids.translate(owner.stack);
      ids.translate(owner.type);
    }
    for (SnapshotStack &stack : process.workingset->stacks)
      ids.translate(stack.stack);
  }
};

// Runs of one snapshot come by ascending first line in each record.
void write_owned(const WorkingSet &set, RecordSink &sink) {
  std::vector<std::byte> runs;
  for (size_t i = 0; i < set.owned.size(); i++) {
    const OwnershipChange &owned = set.owned[i];
    const OwnerSite &owner = set.owners[owned.owner];
    uint32_t context = sink.context(owner.stack, owner.type, owner.origin);
    put_number(runs, runs.empty() ? owned.first : owned.first - set.owned[i - 1].first);
    put_number(runs, owned.count);
    put_number(runs, context);
    const OwnershipChange *next = i + 1 < set.owned.size() ? &set.owned[i + 1] : nullptr;
    if (next && next->snapshot == owned.snapshot && next->first >= owned.first &&
        runs.size() < (64 << 10))
      continue;
    sink.out().record(ASSAY_RECORD_WorkingSetOwners, AssayWorkingSetOwners{owned.snapshot + 1ULL},
                      runs);
    runs.clear();
  }
}

void write(const Profile &, const Process &process, bool, RecordSink &sink) {
  if (!process.workingset)
    return;
  const WorkingSet &set = *process.workingset;
  ContainerWriter &out = sink.out();
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
  write_owned(set, sink);
  for (const SnapshotStack &stack : set.stacks)
    out.record(
        ASSAY_RECORD_WorkingSetStack,
        AssayWorkingSetStack{stack.snapshot + 1ULL, stack.thread, sink.context(stack.stack)});
  for (const Region &region : set.regions)
    out.record(ASSAY_RECORD_Region,
               AssayRegion{region.start, region.end, 1, region.kind, region.owner},
               string_tail(std::span(&region.name, 1)));
}

} // namespace

extern const ToolRecords workingset_records;
const ToolRecords workingset_records = {
    .reader = []() -> std::unique_ptr<ToolReader> { return std::make_unique<Reader>(); },
    .sums = []() -> std::unique_ptr<ToolSums> { return std::make_unique<Sums>(); },
    .write = write,
};

} // namespace profile
