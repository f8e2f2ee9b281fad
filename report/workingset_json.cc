// The document assay.workingset/1.
//
// Bytes are lines times the size of a line, which stands in the head. A curve of misses has the
// unit that the clock allows: a ratio of accesses, or misses a second; by marks it has neither.
// --top cuts lists of owners, also those within a snapshot or phase; snapshots are never cut,
// because they are the run over time.

#include "report/workingset.h"

namespace report {
namespace {

using analyze::OwnerCount;
using analyze::Phase;
using analyze::SnapshotRow;
using analyze::WorkingSetResult;

Json owners_json(const WorkingSetResult &result, const std::vector<OwnerCount> &owners,
                 unsigned top) {
  Json list = Json::array();
  for (const OwnerCount &each : owners) {
    if (top && list.size() == top)
      break;
    list.push_back(owner_json(result.owners[each.owner]));
    list.back()["lines"] = each.lines;
  }
  return list;
}

Json owner_rows_json(const WorkingSetResult &result, unsigned top) {
  Json list = Json::array();
  for (const analyze::OwnerRow &row : result.owner_rows) {
    if (top && list.size() == top)
      break;
    Json json = owner_json(result.owners[row.owner]);
    json["mean_lines"] = row.mean_lines;
    json["mean_bytes"] = row.mean_lines * double(result.line_bytes);
    json["most_lines"] = row.most_lines;
    json["most_bytes"] = result.bytes(row.most_lines);
    json["new_lines"] = row.new_lines;
    json["time_share"] = row.time_share;
    list.push_back(std::move(json));
  }
  return list;
}

Json periods_json(const WorkingSetResult &result) {
  Json list = Json::array();
  for (const analyze::PeriodRow &row : result.periods)
    list.push_back({{"snapshots", row.snapshots},
                    {"length", row.length},
                    {"mean_lines", row.mean_lines},
                    {"most_lines", row.most_lines}});
  return list;
}

Json miss_curve_json(const WorkingSetResult &result) {
  Json list = Json::array();
  double length = double(result.length());
  for (const analyze::MissPoint &point : result.miss_curve) {
    double misses = double(point.misses.most);
    Json json = {{"name", point.name.empty() ? Json(nullptr) : Json(point.name)},
                 {"bytes", point.bytes},
                 {"misses", point.misses.most},
                 {"least_misses", point.misses.least},
                 {"may_be_more", point.may_be_more},
                 {"misses_per_snapshot", misses / double(result.snapshots.size())}};
    if (length > 0 && result.unit == ASSAY_TIME_ACCESSES)
      json["miss_ratio"] = misses / length;
    else if (length > 0 && result.unit != ASSAY_TIME_MARKS)
      json["misses_per_second"] = misses / length * 1e6;
    list.push_back(std::move(json));
  }
  return list;
}

} // namespace

Json workingset_document(const WorkingSetResult &result, unsigned top) {
  Json json;
  json["schema"] = "assay.workingset/1";
  json["program"] = program_json(result.process, result.program_build_id);
  json["pid"] = result.process.pid;
  json["machine"] = machine_json(result.process);
  json["unit"] = "one cache line that was touched by a load or store of instrumented code";
  json["line_size"] = result.line_bytes;
  json["time_unit"] = time_unit_name(result.unit);
  json["losses"] = losses_json(result.losses);
  json["notes"] = result.notes;
  json["coverage"] = Json::object();
  json["findings"] = findings_json(result.findings);
  json["total_lines"] = result.total_lines;
  json["total_bytes"] = result.bytes(result.total_lines);
  json["mean_bytes"] = result.mean_lines * double(result.line_bytes);
  json["largest_bytes"] = result.bytes(result.snapshots[result.largest].lines);
  json["owners"] = owner_rows_json(result, top);
  json["filtered_out"] = {{"owners", result.filtered_owners},
                          {"mean_lines", result.filtered_mean_lines}};
  json["periods"] = periods_json(result);
  json["miss_curve"] = miss_curve_json(result);
  json["snapshots"] = Json::array();
  for (const SnapshotRow &row : result.snapshots) {
    Json stacks = Json::array();
    for (const analyze::ThreadStack &stack : row.stacks)
      stacks.push_back({{"thread", stack.thread}, {"stack", stack_json(stack.frames)}});
    json["snapshots"].push_back({{"begin", row.when.begin},
                                 {"end", row.when.end},
                                 {"begin_us", row.when.begin_us},
                                 {"end_us", row.when.end_us},
                                 {"mark", row.when.name},
                                 {"lines", row.lines},
                                 {"bytes", result.bytes(row.lines)},
                                 {"pages", row.pages},
                                 {"shared_with_previous", row.shared_with_previous},
                                 {"new_lines", row.new_lines},
                                 {"stacks", stacks},
                                 {"idle_threads", row.idle_threads},
                                 {"owners", owners_json(result, row.owners, top)}});
  }
  json["threads"] = Json::array();
  for (const analyze::ThreadRow &row : result.threads)
    json["threads"].push_back({{"thread", row.thread},
                               {"first_snapshot", row.first},
                               {"last_snapshot", row.last},
                               {"work_share", row.work_share},
                               {"function", row.function}});
  json["phases"] = Json::array();
  for (const Phase &phase : result.phases) {
    Json functions = Json::array();
    for (const auto &[name, snapshots] : phase.functions)
      functions.push_back({{"function", name}, {"snapshots", snapshots}});
    json["phases"].push_back({{"first_snapshot", phase.first},
                              {"last_snapshot", phase.last},
                              {"begin", result.snapshots[phase.first].when.begin},
                              {"end", result.snapshots[phase.last].when.end},
                              {"lines", phase.lines},
                              {"mean_lines", phase.mean_lines},
                              {"most_lines", phase.most_lines},
                              {"shared_with_previous", phase.shared_with_previous},
                              {"functions", functions},
                              {"owners", owners_json(result, phase.owners, top)}});
  }
  json["caches"] = Json::array();
  for (const analyze::CacheFit &cache : result.caches)
    json["caches"].push_back(
        {{"name", cache.name},
         {"bytes", cache.bytes},
         {"fits_share", cache.fits_share},
         {"fits_from", cache.fits_from ? Json(*cache.fits_from) : Json(nullptr)}});
  return json;
}

} // namespace report
