// The document assay.heap/1.
//
// Minima and maxima of an empty block are null, not sentinels. used_percent counts objects: total
// is the sum over objects of their percentage, so that total / alloc_count is the mean.

#include "report/call_tree.h"
#include "report/events.h"
#include "report/heap_report.h"
#include "report/json.h"
#include "report/outside.h"
#include "report/timeline.h"

namespace report {
namespace {

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

void put_sums(Json &json, const HeapSums &sums, bool reads_apart) {
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
  if (reads_apart) {
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
  json["peak_bytes"] = sums.peak_bytes;
  json["at_peak_bytes"] = sums.at_peak_bytes;
  json["realloc_count"] = h.realloc_count;
  json["realloc_moved_bytes"] = h.realloc_moved_bytes;
  json["migrated_cpu"] = h.migrated_cpu;
  json["temporary_count"] = h.temporary_count;
  json["lifetime_overlaps"] = h.lifetime_overlaps;
  json["same_alloc_cpu"] = h.same_alloc_cpu;
  json["same_free_cpu"] = h.same_free_cpu;
}

Json context_json(const analyze::HeapContextRow &row, bool reads_apart) {
  const AssayHib &h = row.sums.all;
  Json json;
  json["id"] = row.id;
  json["owner"] = row.owner;
  json["stack"] = stack_json(row.frames);
  json["stack_cut"] = row.stack_cut;
  json["accesses_counted"] = row.accesses_counted;
  json["type"] = row.type.empty() ? Json(nullptr) : Json(row.type);
  json["origin"] = row.origin;
  put_sums(json, row.sums, reads_apart);
  json["last_alloc_us"] = h.last_alloc_us;
  json["last_free_us"] = h.last_free_us;
  json["last_alloc_cpu"] = h.last_alloc_cpu;
  json["last_free_cpu"] = h.last_free_cpu;
  json["histograms"] = {{"size", histogram(row.sums.histograms.size)},
                        {"lifetime_us", histogram(row.sums.histograms.lifetime_us)}};
  json["free_stacks"] = Json::array();
  for (const analyze::FreePlace &place : row.freed_at)
    json["free_stacks"].push_back(
        {{"stack", stack_json(place.frames)}, {"count", place.count}, {"bytes", place.bytes}});
  return json;
}

Json groups_json(const std::vector<analyze::HeapGroupRow> &rows, bool with_layout,
                 bool reads_apart) {
  Json list = Json::array();
  for (const analyze::HeapGroupRow &row : rows) {
    Json json;
    json["name"] = row.name.empty() ? Json(nullptr) : Json(row.name);
    json["contexts"] = row.contexts;
    if (with_layout) {
      json["type_size"] = row.size;
      json["file"] = row.file;
      json["line"] = row.line;
      json["hole_bytes"] = row.has_layout ? Json(row.hole_bytes) : Json(nullptr);
    }
    put_sums(json, row.sums, reads_apart);
    list.push_back(std::move(json));
  }
  return list;
}

Json sites_json(const std::vector<analyze::HeapContextRow> &rows, bool reads_apart) {
  Json list = Json::array();
  for (const analyze::HeapContextRow &row : rows) {
    Json json;
    json["site"] = stack_json({row.owner_frame()}).front();
    json["type"] = row.type.empty() ? Json(nullptr) : Json(row.type);
    json["origin"] = row.origin;
    json["contexts"] = row.contexts;
    json["largest_context"] = row.id;
    put_sums(json, row.sums, reads_apart);
    list.push_back(std::move(json));
  }
  return list;
}

std::string unit_of(const analyze::HeapResult &result) {
  std::string unit =
      "one executed load or store instruction; memory functions count one for each 8 bytes";
  if (!result.accesses_counted)
    return "one allocation; accesses were not counted";
  return result.reads_apart ? unit : unit + "; loads and stores are not told apart";
}

} // namespace

Json heap_document(const analyze::HeapResult &result, unsigned top, const std::string &sort,
                   const analyze::CallTree *tree) {
  Json json;
  json["schema"] = "assay.heap/1";
  profile::Process nobody;
  const profile::Process &process = result.processes.empty() ? nobody : result.processes.front();
  json["program"] = program_json(process, result.program_build_id);
  json["machine"] = machine_json(process);
  json["unit"] = unit_of(result);
  json["block_bytes"] = result.block_bytes;
  json["processes"] = Json::array();
  for (const profile::Process &each : result.processes)
    json["processes"].push_back({{"pid", each.pid},
                                 {"parent_pid", each.parent_pid},
                                 {"path", each.executable},
                                 {"start_unix_ns", each.start_unix_ns},
                                 {"forked", each.forked},
                                 {"reset_us", each.reset_us ? Json(*each.reset_us) : Json(nullptr)},
                                 {"ended", !each.ends.empty()}});
  json["losses"] = losses_json(result.losses);
  json["notes"] = result.notes;
  json["coverage"] = {{"accesses_counted", result.accesses_counted},
                      {"reads_and_writes_apart", result.reads_apart},
                      {"globals_counted", result.globals_counted},
                      {"stacks_counted", result.stacks_counted},
                      {"counted_bytes_share", result.counted_bytes_share},
                      {"modules_instrumented", result.modules_instrumented},
                      {"modules", result.modules_total},
                      {"modules_instrumented_share",
                       result.modules_total
                           ? double(result.modules_instrumented) / double(result.modules_total)
                           : 1},
                      {"uninstrumented_allocators", result.uninstrumented_allocators},
                      {"contexts_filtered_out", result.filtered_out}};
  json["findings"] = findings_json(result.findings);
  Json totals;
  put_sums(totals, result.totals, result.reads_apart);
  totals["contexts"] = result.contexts.size();
  totals["run_us"] = result.run_us;
  totals["peak_bytes"] = result.peak_live_bytes;
  json["totals"] = std::move(totals);
  json["contexts"] = Json::array();
  auto order =
      analyze::ranked(result.contexts, analyze::heap_question(sort.empty() ? "count" : sort));
  if (sort.empty()) { // everything, in the order of ids
    order.clear();
    for (size_t index = 0; index < result.contexts.size(); index++)
      order.push_back(index);
  }
  for (size_t index = 0; index < order.size() && (!top || index < top); index++)
    json["contexts"].push_back(context_json(result.contexts[order[index]], result.reads_apart));
  json["sites"] = sites_json(result.sites, result.reads_apart);
  json["types"] = groups_json(result.types, true, result.reads_apart);
  json["modules"] = groups_json(result.modules, false, result.reads_apart);
  json["globals"] = globals_json(result);
  json["stacks"] = stacks_json(result);
  json["timeline"] = timeline_json(result.processes);
  json["marks"] = marks_json(result.processes);
  json["events"] = events_json(result);
  if (tree)
    json["tree"] = tree_json(*tree);
  return json;
}

std::string heap_json(const analyze::HeapResult &result, unsigned top, const std::string &sort,
                      const analyze::CallTree *tree) {
  return document_text(heap_document(result, top, sort, tree));
}

} // namespace report
