// From records to the model: what all tools share. What a tool's records mean is in profile/NAME_records.cc.
//
// The problem: a file is a stream of deltas (what ended since the last flush), replacements (walks
// of the live objects, peaks) and facts, with numbers that mean something only in that file; and it
// may be cut anywhere. The idea: a Program record begins the records of a process; deltas join in file
// order within it (neighbours in time, bridge = 1), replacements keep only their last complete
// value; when these end, their sums are folded into the file's contexts as those of any other
// process (bridge = 0). Numbers are resolved at the very end, so that the order of Sites, Module
// and Context records does not matter. Reading straight into the final tables was refused: contexts
// would have to be re-keyed whenever a Sites record names their type.
//
// A Reset record empties what was read of its process, and what that holds of measurements; what names things
// (modules, contexts, types, origins, marks) stays.
//
// A record that passes its checksum and still makes no sense is counted as `bad_record` and
// skipped. Memory stays proportional to the file: every table entry stems from a record.

#include "base/fail.h"
#include "profile/merge.h"
#include "profile/tool.h"

#include <algorithm>
#include <map>

namespace profile {
namespace {

class FileReader {
public:
  FileReader(std::span<const std::byte> bytes, const std::string &path) : container_(bytes, path) {
    for (const ToolRecords *tool : tool_records())
      tools_.push_back(tool->reader());
  }

  Profile read() {
    RecordView record;
    while (container_.next(record))
      take(record);
    process(); // of a file that was cut before its first record, too
    close_process_records();
    if (container_.lost_bytes()) {
      lose(ASSAY_LOSS_truncated, container_.lost_bytes());
      output_.profile().notes.push_back(container_.damage());
    }
    for (auto &tool : tools_)
      tool->resolve(numbers_, output_);
    for (auto &[key, sum] : all_events_)
      output_.add(Event{numbers_.stack(key.first), key.second, sum.count, sum.weight});
    for (const Process &process : output_.profile().processes) {
      const bool is_cut_off =
          container_.is_damaged() && &process == &output_.profile().processes.back();
      if (process.ends.empty() && !is_cut_off)
        lose(ASSAY_LOSS_killed, 1);
      if (has_used_parents_objects(process))
        lose(ASSAY_LOSS_forked_use, 1);
    }
    return output_.finish();
  }

  using Bytes = std::span<const std::byte>;

  void on(const AssayProgram &r, Bytes tail) {
    auto strings = read_strings(tail);
    close_process_records();
    Process process;
    process.pid = r.pid;
    process.parent_pid = r.parent_pid;
    process.start_unix_ns = r.start_unix_ns;
    process.tools = r.tools;
    process.forked = r.forked != 0;
    if (!strings.empty()) {
      process.executable = strings.front();
      process.arguments.assign(strings.begin() + 1, strings.end());
    }
    output_.profile().processes.push_back(std::move(process));
  }

  void on(const AssayMachine &r, Bytes tail) {
    auto names = read_strings(tail);
    names.resize(std::max<size_t>(names.size(), 3));
    process().machine = Machine{r.cpus,     r.page_bytes, r.line_bytes, r.l1d_bytes, r.l2_bytes,
                                r.l3_bytes, names[0],     names[1],     names[2]};
  }

  void on(const AssayOptions &, Bytes tail) { process().options = read_text(tail); }
  void on(const AssayModule &r, Bytes tail) { numbers_.add(r, tail, process()); }
  void on(const AssayModuleUnload &r, Bytes) { numbers_.add(r, process()); }
  void on(const AssaySites &r, Bytes tail) {
    numbers_.add(r, tail);
    for (auto &tool : tools_)
      tool->on_sites(static_cast<uint32_t>(r.module), tail);
  }
  void on(const AssayContext &r, Bytes tail) { numbers_.add(r, tail); }
  void on(const AssayOrigin &r, Bytes tail) { numbers_.add(r, read_text(tail)); }

  void on(const AssayReset &r, Bytes) {
    events_.clear();
    for (auto &tool : tools_)
      tool->reset(process());
    process().reset_us = r.time_us;
  }

  void on(const AssayMark &r, Bytes tail) {
    process().marks.push_back({r.time_us, read_text(tail)});
  }

  void on(const AssayEvent &r, Bytes tail) {
    EventSum &sum = events_[{context_number(r.context), read_text(tail)}];
    sum.count += r.count;
    sum.weight += r.weight;
  }

  void on(const AssayLoss &r, Bytes) {
    if (r.kind > UINT32_MAX)
      base::fail("kind of loss");
    lose(static_cast<uint32_t>(r.kind), r.count);
  }

  void on(const AssayEnd &r, Bytes) { process().ends.push_back({r.reason, r.status, r.time_us}); }

private:
  struct EventSum {
    uint64_t count = 0, weight = 0;
  };
  using EventSums = std::map<std::pair<ContextNumber, std::string>, EventSum>;

  void take(const RecordView &record) {
    try {
      bool taken = dispatch(*this, record);
      for (auto tool = tools_.begin(); !taken && tool != tools_.end(); ++tool)
        taken = (*tool)->take(record, process());
      if (!taken)
        lose(ASSAY_LOSS_unknown_record, 1);
    } catch (const base::Failure &) {
      lose(ASSAY_LOSS_bad_record, 1);
    }
  }

  // Or may have: the child of a fork does not count what it does with objects that it did not make.
  bool has_used_parents_objects(const Process &process) {
    const uint64_t followers = process.tools & tools_that_follow_objects();
    const bool became_another =
        !process.ends.empty() && process.ends.front().reason == ASSAY_END_EXEC;
    return process.forked && !became_another && followers &&
           std::ranges::any_of(process.mappings, [&](const Mapping &mapping) {
             return std::ranges::any_of(output_.profile().modules[mapping.module.v].units,
                                        [&](const Unit &unit) { return unit.tools & followers; });
           });
  }

  // The process that records are about now; a file without a Program record gets one that is
  // known by the pid of the file header alone.
  Process &process() {
    auto &processes = output_.profile().processes;
    if (processes.empty()) {
      processes.emplace_back();
      processes.back().pid = container_.header().pid;
      processes.back().start_unix_ns = container_.header().start_unix_ns;
    }
    return processes.back();
  }

  void lose(uint32_t kind, uint64_t count) { output_.profile().losses[kind] += count; }

  void close_process_records() {
    for (auto &tool : tools_)
      if (!output_.profile().processes.empty())
        tool->end_process_records(process());
    for (auto &[key, event] : events_) {
      EventSum &sum = all_events_[key];
      sum.count += event.count;
      sum.weight += event.weight;
    }
    events_.clear();
    numbers_.end_process_records();
  }

  ContainerReader container_;
  Assembler output_;
  FileNumbers numbers_{output_};
  std::vector<std::unique_ptr<ToolReader>> tools_;
  EventSums events_, all_events_; // of the process; of the file
};

} // namespace

Profile read_bytes(std::span<const std::byte> bytes, const std::string &path) {
  return FileReader(bytes, path).read();
}

} // namespace profile
