// A counter keeps its value until the next event of its track, so each track ends with a zero: else the
// last snapshot would seem to last for ever. Perfetto's own protobuf form was refused: it would save
// space in files of a few megabytes, and no script could read them.

#include "report/perfetto.h"

#include "report/text_parts.h"

#include <algorithm>
#include <set>

namespace report {
namespace {

using analyze::Phase;
using analyze::SnapshotRow;
using analyze::WorkingSetResult;

class Trace {
public:
  Trace(const profile::Profile &profile, unsigned top) : top_(top) {
    for (const profile::Process &process : profile.processes)
      origin_ns_ = std::min(origin_ns_, process.start_unix_ns);
  }

  void add(const profile::Process &process, const WorkingSetResult *set) {
    begin_us_ = (process.start_unix_ns - origin_ns_) / 1000;
    for (pid_ = process.pid; !pids_.insert(pid_).second;) // merged runs may have the same
      pid_++;
    name("process_name", command_text(process));
    for (const profile::TimelinePoint &point : process.timeline)
      counter("live heap", point.time_us, point.live_bytes);
    for (const profile::Mark &mark : process.marks) {
      Json event = this->event("i", mark.name, mark.time_us);
      event["s"] = "p"; // of the process
      events_.push_back(std::move(event));
    }
    if (set) {
      sizes(*set);
      owners(*set);
      phases(*set);
    }
  }

  Json take() {
    Json json;
    json["displayTimeUnit"] = "ms";
    json["traceEvents"] = std::move(events_);
    return json;
  }

private:
  Json event(const char *kind, const std::string &name, uint64_t us) const {
    return {{"ph", kind},
            {"name", printable(name)},
            {"pid", pid_},
            {"tid", pid_},
            {"ts", begin_us_ + us}};
  }
  void name(const char *what, const std::string &name) {
    Json event = this->event("M", what, 0);
    event["args"] = {{"name", printable(name)}};
    events_.push_back(std::move(event));
  }
  void counter(const std::string &track, uint64_t us, uint64_t bytes) {
    Json event = this->event("C", track, us);
    event["args"] = {{"bytes", bytes}};
    events_.push_back(std::move(event));
  }

  static uint64_t end_us(const WorkingSetResult &set) { return set.snapshots.back().when.end_us; }

  void sizes(const WorkingSetResult &set) {
    for (const SnapshotRow &row : set.snapshots) {
      counter("working set", row.when.begin_us, set.bytes(row.lines));
      counter("new in the working set", row.when.begin_us, set.bytes(row.new_lines));
    }
    counter("working set", end_us(set), 0);
    counter("new in the working set", end_us(set), 0);
  }

  void owners(const WorkingSetResult &set) {
    constexpr size_t kNone = SIZE_MAX;
    size_t shown = std::min<size_t>(top_, set.owner_rows.size());
    std::vector<size_t> track_of(set.owners.size(), kNone);
    for (size_t track = 0; track < shown; track++)
      track_of[set.owner_rows[track].owner] = track;
    std::vector<std::string> tracks;
    tracks.reserve(shown + 1);
    for (size_t track = 0; track < shown; track++)
      tracks.push_back("in it: " + full_name(set.owners[set.owner_rows[track].owner]));
    if (shown < set.owner_rows.size())
      tracks.emplace_back("in it: all others");
    for (const SnapshotRow &row : set.snapshots) {
      std::vector<uint64_t> lines(tracks.size());
      for (const analyze::OwnerCount &owner : row.owners)
        lines[std::min(track_of[owner.owner], tracks.size() - 1)] += owner.lines;
      for (size_t track = 0; track < tracks.size(); track++)
        counter(tracks[track], row.when.begin_us, set.bytes(lines[track]));
    }
    for (const std::string &track : tracks)
      counter(track, end_us(set), 0);
  }

  void phases(const WorkingSetResult &set) {
    name("thread_name", "phases");
    for (const Phase &phase : set.phases) {
      uint64_t begin = set.snapshots[phase.first].when.begin_us;
      Json event = this->event(
          "X", phase.functions.empty() ? "phase" : phase.functions.front().first, begin);
      event["dur"] = std::max(set.snapshots[phase.last].when.end_us, begin) - begin;
      event["args"] = {{"mean_bytes", set.bytes(phase.mean_lines)},
                       {"distinct_bytes", set.bytes(phase.lines)},
                       {"kept_bytes", set.bytes(phase.shared_with_previous)}};
      if (!phase.owners.empty())
        event["args"]["filled_by"] = printable(full_name(set.owners[phase.owners.front().owner]));
      events_.push_back(std::move(event));
    }
  }

  unsigned top_;
  uint64_t origin_ns_ = UINT64_MAX, begin_us_ = 0, pid_ = 0;
  std::set<uint64_t> pids_;
  Json events_ = Json::array();
};

} // namespace

Json perfetto_trace(const profile::Profile &profile, const std::vector<WorkingSetResult> &sets,
                    unsigned top) {
  Trace trace(profile, top);
  auto set = sets.begin();
  for (const profile::Process &process : profile.processes) {
    bool has_set = process.workingset && !process.workingset->snapshots.empty();
    trace.add(process, has_set ? &*set++ : nullptr);
  }
  return trace.take();
}

} // namespace report
