// `assay values` as JSON: schema assay.values/1.
//
// The share of a value always stands with its interval, `low` and `high`. Values are text, in
// hexadecimal, so that all 64 bits are there. An instruction has all its lists; `values` repeats
// the first one of a result or load. Strides are there only of addresses. --top counts functions,
// whatever file they are in.

#include "report/values_report.h"

#include "abi/records.h"
#include "abi/samples.h"
#include "report/json.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using analyze::ValueFunction;
using analyze::ValueInstruction;
using analyze::ValueList;
using analyze::ValueShare;
using analyze::ValuesResult;

const char *const kKinds[] = {
#define ASSAY_VALUE_KIND(name, word, subject, bytes, what, meaning) #name,
#include "abi/value_kinds.def"
};

Json shares_json(const std::vector<ValueShare> &shares) {
  Json list = Json::array();
  for (const ValueShare &share : shares) {
    Json json = {{"value", fmt::format("{:#x}", share.value)},
                 {"value_share", share.share},
                 {"low", share.low},
                 {"high", share.high}};
    if (!share.name.empty())
      json["name"] = share.name;
    list.push_back(std::move(json));
  }
  return list;
}

Json list_json(const ValueList &list) {
  Json json = {{"kind", kKinds[list.kind]}, {"subject", list.subject},
               {"bytes", list.bytes},       {"count", list.values},
               {"samples", list.samples},   {"hot", shares_json(list.hot)}};
  if (assay_value_is(list.kind) == ASSAY_VALUE_IS_address)
    json["strides"] = shares_json(list.strides);
  if (assay_value_is(list.kind) == ASSAY_VALUE_IS_truth)
    json["taken_share"] = list.taken_share;
  return json;
}

Json levels_json(const ValueList &list) {
  Json levels = Json::array();
  for (const ValueShare &share : list.hot)
    levels.push_back({{"level", share.name},
                      {"level_share", share.share},
                      {"low", share.low},
                      {"high", share.high}});
  return levels;
}

Json instruction_json(const ValueFunction &function, const ValueInstruction &instruction) {
  Json json = {{"offset", fmt::format("{:#x}", instruction.offset)},
               {"function", function.name},
               {"file", instruction.file},
               {"line", instruction.line},
               {"text", instruction.text},
               {"samples", instruction.interrupts},
               {"executions", instruction.executions}};
  Json values = Json::array(), lists = Json::array(), callers = Json::array();
  Json latency = Json::array();
  for (const ValueList &list : instruction.lists) {
    if (list.kind == ASSAY_VALUE_caller)
      callers = shares_json(list.hot);
    else if (assay_value_is(list.kind) == ASSAY_VALUE_IS_levels)
      latency = levels_json(list);
    else if (values.empty() && (list.kind == ASSAY_VALUE_result || list.kind == ASSAY_VALUE_load))
      values = shares_json(list.hot);
    lists.push_back(list_json(list));
  }
  json["values"] = std::move(values);
  json["lists"] = std::move(lists);
  json["callers"] = std::move(callers);
  json["latency"] = std::move(latency);
  return json;
}

Json executables_json(const ValuesResult &result, unsigned top) {
  Json list = Json::array();
  for (const auto &executable : result.executables) {
    Json json = {{"path", executable.path},
                 {"build_id", executable.build_id},
                 {"samples", executable.interrupts},
                 {"instructions", Json::array()}};
    list.push_back(std::move(json));
  }
  size_t functions = 0;
  for (const ValueFunction &function : result.functions) {
    if (top && functions++ >= top)
      break;
    for (Json &json : list)
      if (json["path"] == function.module_path)
        for (const ValueInstruction &instruction : function.instructions)
          json["instructions"].push_back(instruction_json(function, instruction));
  }
  return list;
}

Json conflicts_json(const ValuesResult &result) {
  static const char *const kWhy[] = {"", "forwarding", "alias_4k", "order"};
  Json list = Json::array();
  for (const auto &conflict : result.conflicts)
    list.push_back({{"kind", kWhy[std::min(conflict.kind, 3u)]},
                    {"store",
                     {{"function", conflict.store_function->name},
                      {"offset", fmt::format("{:#x}", conflict.store->offset)},
                      {"text", conflict.store->text},
                      {"line", conflict.store->line}}},
                    {"load",
                     {{"function", conflict.load_function->name},
                      {"offset", fmt::format("{:#x}", conflict.load->offset)},
                      {"text", conflict.load->text},
                      {"line", conflict.load->line}}},
                    {"count", conflict.count},
                    {"load_share", conflict.share}});
  return list;
}

Json sampling_json(const ValuesResult &result) {
  Json json = Json::object();
  if (const auto &sampling = result.process.sampling)
    json = {{"collector", sampling->collector},
            {"collector_name", sampling->collector == ASSAY_COLLECTOR_UPCALL  ? "upcall"
                               : sampling->collector == ASSAY_COLLECTOR_TIMER ? "timer"
                                                                              : "kernel"},
            {"scope", sampling->scope},
            {"hertz", sampling->hertz},
            {"instructions", sampling->instructions},
            {"most_skipped", sampling->most_skipped},
            {"duration_us", result.duration_us}};
  return json;
}

Json ends_json(const ValuesResult &result) {
  Json list = Json::array();
  for (const auto &[meaning, samples] : result.ends)
    list.push_back({{"by", meaning}, {"samples", samples}});
  return list;
}

} // namespace

Document values_document(const ValuesResult &result, unsigned top) {
  Document document;
  document.put("schema", "assay.values/1");
  document.put("program", program_json(result.process, result.program_build_id));
  document.put("machine", machine_json(result.process));
  document.put("unit", "samples by time");
  document.put("sampling", sampling_json(result));
  document.put("samples", result.samples);
  document.put("losses", losses_json(result.losses));
  document.put("notes", result.notes);
  document.put("coverage", Json{{"ends", ends_json(result)}});
  document.put("findings", findings_json(result.findings));
  document.put("executables", executables_json(result, top));
  document.put("conflicts", conflicts_json(result));
  return document;
}

Json values_json(const ValuesResult &result, unsigned top) {
  return {{"samples", result.samples},
          {"findings", findings_json(result.findings)},
          {"executables", executables_json(result, top)},
          {"conflicts", conflicts_json(result)}};
}

} // namespace report
