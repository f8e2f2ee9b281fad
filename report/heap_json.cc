// The document assay.heap/1.
//
// Minima and maxima of an empty block are null, not sentinels; so are peaks that are not known.
// used_percent counts objects: total is the sum over objects of their percentage, so that total /
// alloc_count is the mean.

#include "report/call_tree.h"
#include "report/events.h"
#include "report/heap_report.h"
#include "report/json.h"
#include "report/non_heap.h"
#include "report/timeline.h"

#include <numeric>

namespace report {
namespace {

using analyze::HeapResult;
using analyze::HeapSums;

Json total_min_max(uint64_t total, uint64_t min, uint64_t max, bool empty) {
  if (empty)
    return {{"total", total}, {"min", nullptr}, {"max", nullptr}};
  return {{"total", total}, {"min", min}, {"max", max}};
}

Json hundredths(uint64_t total, uint64_t min, uint64_t max, bool empty) {
  Json json = {{"total", double(total) / 100}, {"min", nullptr}, {"max", nullptr}};
  if (!empty) {
    json["min"] = double(min) / 100;
    json["max"] = double(max) / 100;
  }
  return json;
}

// [[lower bound, count], …] of the buckets that are not empty.
Json histogram(const uint64_t *buckets) {
  Json list = Json::array();
  for (uint32_t bucket = 0; bucket < ASSAY_HISTOGRAM_BUCKETS; bucket++)
    if (buckets[bucket])
      list.push_back({bucket == 0 ? uint64_t{0} : uint64_t{1} << bucket, buckets[bucket]});
  return list;
}

// What is not known where no accesses were counted.
constexpr const char *kOfAccesses[] = {
    "access_count", "used_percent", "access_density", "lifetime_access_density",
    "reads",        "writes",       "touched_bytes",  "blocks_touched",
    "used_share",   "cold_byte_us"};

void put_sums(Json &json, const HeapSums &sums, const HeapResult &result) {
  const AssayHib &h = sums.all;
  bool empty = h.alloc_count == 0;
  json["alloc_count"] = h.alloc_count;
  json["access_count"] = total_min_max(h.reads + h.writes, h.access_min, h.access_max, empty);
  json["size"] = total_min_max(h.size_total, h.size_min, h.size_max, empty);
  json["lifetime_us"] =
      total_min_max(h.lifetime_us_total, h.lifetime_us_min, h.lifetime_us_max, empty);
  json["used_percent"] = hundredths(h.used_centi_total, h.used_centi_min, h.used_centi_max, empty);
  json["access_density"] = hundredths(h.density_total, h.density_min, h.density_max, empty);
  json["lifetime_access_density"] =
      hundredths(h.lifetime_density_total, h.lifetime_density_min, h.lifetime_density_max, empty);
  if (result.reads_apart) {
    json["reads"] = h.reads;
    json["writes"] = h.writes;
  }
  json["touched_bytes"] = h.touched_bytes;
  json["blocks_spanned"] = h.blocks_spanned;
  json["blocks_touched"] = h.blocks_touched;
  json["used_share"] = sums.used_share();
  json["byte_us"] = h.byte_us_total;
  json["cold_byte_us"] = h.cold_byte_us_total;
  json["live_count"] = sums.live.alloc_count;
  json["live_bytes"] = sums.live.size_total;
  json["suppressed_count"] = sums.suppressed_count;
  json["suppressed_bytes"] = sums.suppressed_bytes;
  json["peak_bytes"] = result.peak_is_divided ? Json(sums.peak_bytes) : Json(nullptr);
  json["at_peak_bytes"] = result.peak_is_divided ? Json(sums.at_peak_bytes) : Json(nullptr);
  json["realloc_count"] = h.realloc_count;
  json["realloc_moved_bytes"] = h.realloc_moved_bytes;
  json["migrated_cpu"] = h.migrated_cpu;
  if (!result.accesses_measured())
    for (const char *key : kOfAccesses)
      if (json.contains(key))
        json[key] = json[key].is_object()
                        ? Json{{"total", nullptr}, {"min", nullptr}, {"max", nullptr}}
                        : Json(nullptr);
  json["temporary_count"] = h.temporary_count;
  json["lifetime_overlaps"] = h.lifetime_overlaps;
  json["same_alloc_cpu"] = h.same_alloc_cpu;
  json["same_free_cpu"] = h.same_free_cpu;
}

Json recursion_json(const analyze::RecursionRow &row) {
  if (row.objects == 0)
    return nullptr;
  return {{"function", row.function},
          {"objects", row.objects},
          {"min_levels", row.min},
          {"mean_levels", row.mean()},
          {"max_levels", row.max}};
}

Json context_json(const analyze::HeapContextRow &row, const HeapResult &result) {
  const AssayHib &h = row.sums.all;
  Json json;
  json["id"] = row.id;
  json["owner"] = row.owner;
  json["stack"] = stack_json(row.frames);
  json["stack_cut"] = row.stack_cut;
  json["accesses_counted"] = row.accesses_counted;
  json["type"] = row.type.empty() ? Json(nullptr) : Json(row.type);
  json["origin"] = row.origin;
  put_sums(json, row.sums, result);
  json["last_alloc_us"] = h.last_alloc_us;
  json["last_free_us"] = h.last_free_us;
  json["last_alloc_cpu"] = h.last_alloc_cpu;
  json["last_free_cpu"] = h.last_free_cpu;
  json["histograms"] = {{"size", histogram(row.sums.histograms.size)},
                        {"lifetime_us", histogram(row.sums.histograms.lifetime_us)}};
  json["recursion"] = recursion_json(row.recursion);
  json["free_stacks"] = Json::array();
  for (const analyze::FreeSite &place : row.freed_at)
    json["free_stacks"].push_back(
        {{"stack", stack_json(place.frames)}, {"count", place.count}, {"bytes", place.bytes}});
  return json;
}

Json groups_json(const std::vector<analyze::HeapGroupRow> &rows, bool with_layout,
                 const HeapResult &result) {
  Json list = Json::array();
  for (const analyze::HeapGroupRow &row : rows) {
    Json json;
    json["name"] = row.name.empty() ? Json(nullptr) : Json(row.name);
    json["contexts"] = row.contexts;
    json["accesses_counted"] = row.accesses_counted;
    if (with_layout) {
      json["type_size"] = row.size;
      json["file"] = row.file;
      json["line"] = row.line;
      json["hole_bytes"] = row.has_layout ? Json(row.hole_bytes) : Json(nullptr);
    }
    put_sums(json, row.sums, result);
    list.push_back(std::move(json));
  }
  return list;
}

Json site_json(const analyze::HeapContextRow &row, const HeapResult &result) {
  Json json;
  json["site"] = frame_json(row.owner_frame());
  json["accesses_counted"] = row.accesses_counted;
  json["type"] = row.type.empty() ? Json(nullptr) : Json(row.type);
  json["origin"] = row.origin;
  json["contexts"] = row.contexts;
  json["largest_context"] = row.id;
  json["recursion"] = recursion_json(row.recursion);
  put_sums(json, row.sums, result);
  return json;
}

// Indices of the contexts, in order.
std::vector<size_t> shown_contexts(const analyze::HeapResult &result, unsigned top,
                                   const std::string &sort) {
  std::vector<size_t> order;
  if (sort.empty()) { // everything, in the order of ids
    order.resize(result.contexts.size());
    std::iota(order.begin(), order.end(), size_t{0});
  } else {
    order = analyze::ranked(result.contexts, analyze::heap_question(sort));
  }
  if (top && top < order.size())
    order.resize(top);
  return order;
}

Json processes_json(const std::vector<profile::Process> &processes) {
  Json list = Json::array();
  for (const profile::Process &each : processes)
    list.push_back({{"pid", each.pid},
                    {"parent_pid", each.parent_pid},
                    {"path", each.executable},
                    {"start_unix_ns", each.start_unix_ns},
                    {"forked", each.forked},
                    {"reset_us", each.reset_us ? Json(*each.reset_us) : Json(nullptr)},
                    {"ended", !each.ends.empty()}});
  return list;
}

Json coverage_json(const analyze::HeapResult &result) {
  double share =
      result.modules_total ? double(result.modules_instrumented) / double(result.modules_total) : 1;
  return {{"accesses_counted", result.accesses_counted},
          {"reads_and_writes_apart", result.reads_apart},
          {"globals_counted", result.globals_counted},
          {"stacks_counted", result.stacks_counted},
          {"counted_bytes_share", result.counted_bytes_share},
          {"modules_instrumented", result.modules_instrumented},
          {"modules", result.modules_total},
          {"modules_instrumented_share", share},
          {"uninstrumented_allocators", result.uninstrumented_allocators},
          {"modules_without_symbols", result.nameless_modules},
          {"contexts_filtered_out", result.filtered_out}};
}

Json totals_json(const analyze::HeapResult &result) {
  Json json;
  put_sums(json, result.totals, result);
  json["contexts"] = result.contexts.size();
  json["run_us"] = result.run_us;
  json["peak_bytes"] = result.peak_live_bytes;
  return json;
}

std::string unit_of(const analyze::HeapResult &result) {
  std::string unit =
      "one executed load or store instruction; memory functions count one for each 8 bytes";
  if (!result.accesses_counted)
    return "one allocation; accesses were not counted";
  return result.reads_apart ? unit : unit + "; loads and stores are not told apart";
}

} // namespace

Document heap_document(const analyze::HeapResult &result, unsigned top, const std::string &sort,
                       const analyze::CallTree *tree) {
  profile::Process nobody;
  const profile::Process &process = result.processes.empty() ? nobody : result.processes.front();
  Document document;
  document.put("schema", "assay.heap/1");
  document.put("program", program_json(process, result.program_build_id));
  document.put("machine", machine_json(process));
  document.put("unit", unit_of(result));
  document.put("block_bytes", result.block_bytes);
  document.put("processes", processes_json(result.processes));
  document.put("losses", losses_json(result.losses));
  document.put("notes", result.notes);
  document.put("coverage", coverage_json(result));
  document.put("findings", findings_json(result.findings));
  document.put("totals", totals_json(result));
  auto order = shown_contexts(result, top, sort);
  document.list("contexts", order.size(), [&result, order](size_t index) {
    return context_json(result.contexts[order[index]], result);
  });
  document.list("sites", result.sites.size(),
                [&result](size_t index) { return site_json(result.sites[index], result); });
  document.put("types", groups_json(result.types, true, result));
  document.put("modules", groups_json(result.modules, false, result));
  document.put("globals", globals_json(result));
  document.put("stacks", stacks_json(result));
  document.put("timeline", timeline_json(result.processes));
  document.put("marks", marks_json(result.processes));
  document.list("events", result.events.size(),
                [&result](size_t index) { return event_json(result.events[index]); });
  if (tree)
    document.put("tree", tree_json(*tree, result.peak_is_divided));
  return document;
}

std::string heap_json(const analyze::HeapResult &result, unsigned top, const std::string &sort,
                      const analyze::CallTree *tree) {
  std::string text;
  write_document(heap_document(result, top, sort, tree), {},
                 [&text](std::string_view piece) { text += piece; });
  return text;
}

} // namespace report
