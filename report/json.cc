// Shared parts of the JSON documents. Keys are the public interface: add freely, rename none
// without a new schema number.

#include "report/json.h"

#include "profile/losses.h"

#include <fmt/format.h>

namespace report {

Json frame_json(const analyze::Frame &frame) {
  // No initializer list, which makes a list of each pair first: a document may have millions of frames.
  Json::object_t json;
  json.reserve(9);
  json.emplace_back("function", frame.function);
  json.emplace_back("linkage_name", frame.linkage_name);
  json.emplace_back("file", frame.file);
  json.emplace_back("line", frame.line);
  json.emplace_back("column", frame.column);
  json.emplace_back("function_start_line", frame.function_start_line);
  json.emplace_back("module", frame.module);
  json.emplace_back("address", fmt::format("{:#x}", frame.address));
  json.emplace_back("inlined", frame.inlined);
  return json;
}

Json stack_json(const analyze::CallStack &frames) {
  Json stack = Json::array();
  for (const analyze::Frame &frame : frames)
    stack.push_back(frame_json(frame));
  return stack;
}

Json program_json(const profile::Process &process, const std::string &build_id) {
  return {{"path", process.executable}, {"arguments", process.arguments}, {"build_id", build_id}};
}

Json machine_json(const profile::Process &process) {
  if (!process.machine)
    return nullptr;
  const profile::Machine &m = *process.machine;
  return {{"host", m.host},           {"cpu_model", m.cpu_model},   {"kernel", m.kernel},
          {"cpus", m.cpus},           {"page_bytes", m.page_bytes}, {"line_bytes", m.line_bytes},
          {"l1d_bytes", m.l1d_bytes}, {"l2_bytes", m.l2_bytes},     {"l3_bytes", m.l3_bytes}};
}

Json losses_json(const std::map<uint32_t, uint64_t> &losses) {
  Json list = Json::array();
  for (auto [number, count] : losses) {
    auto kind = profile::loss_kind(number);
    list.push_back({{"kind", kind.name},
                    {"count", count},
                    {"unit", kind.unit},
                    {"why", kind.what},
                    {"remedy", kind.remedy}});
  }
  return list;
}

Json owner_json(const analyze::OwnerName &owner) {
  return {{"kind", owner.kind},
          {"name", owner.name},
          {"type", owner.type.empty() ? Json(nullptr) : Json(owner.type)}};
}

Json findings_json(const std::vector<analyze::Finding> &findings) {
  Json list = Json::array();
  for (const analyze::Finding &finding : findings)
    list.push_back({{"rule", finding.rule},
                    {"message", finding.message},
                    {"location", finding.location},
                    {"saves", {{"amount", finding.saves.amount}, {"unit", finding.saves.unit}}},
                    {"weight_share", finding.weight},
                    {"evidence", finding.evidence},
                    {"action", finding.action},
                    {"qualified_by", finding.qualified_by}});
  return list;
}

const char *time_unit_name(uint32_t unit) {
  switch (unit) {
  case ASSAY_TIME_CPU: return "cpu_us";
  case ASSAY_TIME_ACCESSES: return "accesses";
  case ASSAY_TIME_MARKS: return "mark";
  default: return "wall_us";
  }
}

void put_accesses(Json &json, uint64_t reads, uint64_t writes, bool reads_apart) {
  json["accesses"] = reads + writes;
  if (!reads_apart)
    return;
  json["reads"] = reads;
  json["writes"] = writes;
}

std::string json_text(const Json &json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string document_text(const Json &document) {
  return json_text(document) + "\n";
}

} // namespace report
