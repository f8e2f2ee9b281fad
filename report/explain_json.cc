// The document assay.explain/1.
//
// Nothing was run, so all figures are of instructions as they stand in the file. What is not known
// is null and its key stays: a share of nothing, a function without a line, a loop without a count.
// Addresses are text, in hexadecimal. Bytes that belong to no function are in no figure, and so are
// a loss.

#include "report/explain.h"

#include "report/explain_parts.h"

#include <algorithm>

namespace report {
namespace {

using analyze::ExplainedAccess;
using analyze::ExplainedFunction;
using analyze::ExplainedLine;
using analyze::ExplainSummary;

// Of nothing there is no share.
Json share(uint64_t part, uint64_t whole) {
  return whole ? Json(double(part) / double(whole)) : Json(nullptr);
}

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json summary_json(const analyze::Explanation &explanation) {
  const ExplainSummary &s = explanation.summary;
  Json reasons = Json::array();
  for (const auto &[reason, functions] : s.why_not) {
    auto meaning = s.meanings.find(reason);
    reasons.push_back(
        {{"why_not", reason},
         {"meaning", meaning == s.meanings.end() ? Json(nullptr) : Json(meaning->second)},
         {"functions", functions}});
  }
  Json opaque = Json::array();
  for (const auto &[name, count] : s.opaque)
    opaque.push_back({{"name", name}, {"instructions", count}});
  uint64_t without_form = s.figures.accesses - s.figures.with_form;
  uint64_t outcomes = s.figures.branches - s.figures.conditions;
  return {{"functions", s.functions},
          {"executable_bytes", s.executable_bytes},
          {"bytes_in_functions", s.bytes_in_functions},
          {"padding_bytes", s.padding_bytes},
          {"in_functions_share", share(s.bytes_in_functions, s.executable_bytes)},
          {"in_loops", s.figures.in_loops},
          {"affine_in_loops", s.figures.affine_in_loops},
          {"affine_in_loops_share", share(s.figures.affine_in_loops, s.figures.in_loops)},
          {"branches", s.figures.branches},
          {"conditions", s.figures.conditions},
          {"conditions_share", share(s.figures.conditions, s.figures.branches)},
          {"understood", s.understood},
          {"understood_share", share(s.understood, s.functions)},
          {"why_not", std::move(reasons)},
          {"code_bytes", s.figures.code_bytes},
          {"reached_bytes", s.figures.reached_bytes},
          {"reached_share", share(s.figures.reached_bytes, s.figures.code_bytes)},
          {"instructions", s.figures.instructions},
          {"opaque_instructions", s.figures.opaque_instructions},
          {"opaque_share", share(s.figures.opaque_instructions, s.figures.instructions)},
          {"opaque", std::move(opaque)},
          {"loops", s.figures.loops},
          {"jump_tables", s.figures.jump_tables},
          {"accesses", s.figures.accesses},
          {"with_form", s.figures.with_form},
          {"with_form_share", share(s.figures.with_form, s.figures.accesses)},
          {"affine", s.figures.affine},
          {"affine_share", share(s.figures.affine, s.figures.accesses)},
          {"definitions", s.figures.definitions},
          {"arguments", s.figures.arguments},
          {"definitions_per_access", share(s.figures.definitions, s.figures.with_form)},
          {"values_per_access",
           share(s.figures.definitions + without_form + outcomes, s.figures.accesses)},
          {"cpu_seconds", explanation.cpu_seconds}};
}

template <class T> Json value_or_null(const std::optional<T> &value) {
  return value ? Json(*value) : Json(nullptr);
}

Json index_or_null(uint32_t index) {
  return index == UINT32_MAX ? Json(nullptr) : Json(index);
}

Json loops_json(const ExplainedFunction &function, bool all) {
  Json list = Json::array();
  for (const analyze::ExplainedLoop &loop : function.loops) {
    Json json = {{"header", address_text(loop.header)},
                 {"counter", loop.counter},
                 {"parent", index_or_null(loop.parent)},
                 {"depth", loop.depth},
                 {"instruction_count", loop.instructions},
                 {"access_count", loop.accesses},
                 {"affine_count", loop.affine}};
    if (all) {
      Json exits = Json::array();
      for (const analyze::ExplainedExit &exit : loop.exits)
        exits.push_back({{"pc", address_text(exit.pc)},
                         {"leaves_if", text_or_null(exit.leaves_if)},
                         {"by_exception", exit.by_exception}});
      json["exits"] = std::move(exits);
      json["iterations"] = text_or_null(loop.iterations);
      json["iterations_bits"] =
          loop.iterations.empty() ? Json(nullptr) : Json(loop.iterations_bits);
      json["iteration_count"] = value_or_null(loop.iteration_count);
      json["sentence"] = loop.sentence;
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json instructions_json(const ExplainedFunction &function) {
  Json list = Json::array();
  for (const ExplainedLine &line : function.lines) {
    Json json = {{"pc", address_text(line.pc)},
                 {"text", line.text},
                 {"depth", line.depth},
                 {"micro_ops", line.micro_ops},
                 {"opaque", line.opaque},
                 {"tail_call", line.tail_call},
                 {"callee", text_or_null(line.callee)},
                 {"mentions", text_or_null(line.mentions)},
                 {"file", text_or_null(line.file)},
                 {"line", line.source_line ? Json(line.source_line) : Json(nullptr)}};
    if (!line.kept.empty())
      json["kept"] = line.kept;
    list.push_back(std::move(json));
  }
  return list;
}

Json blocks_json(const ExplainedFunction &function) {
  Json list = Json::array();
  for (const analyze::ExplainedBlock &block : function.blocks)
    list.push_back({{"address", address_text(block.address)},
                    {"instruction_count", block.instructions},
                    {"live", block.live}});
  return list;
}

Json edges_json(const ExplainedFunction &function) {
  Json list = Json::array();
  for (const analyze::ExplainedEdge &edge : function.edges)
    list.push_back(
        {{"from", address_text(edge.from)}, {"to", address_text(edge.to)}, {"kind", edge.kind}});
  return list;
}

Json tables_json(const ExplainedFunction &function) {
  Json list = Json::array();
  for (const analyze::ExplainedTable &table : function.tables) {
    Json entries = Json::array();
    for (const auto &entry : table.entries)
      entries.push_back(entry ? Json(address_text(*entry)) : Json(nullptr));
    list.push_back({{"jump", address_text(table.jump)},
                    {"address", address_text(table.address)},
                    {"entry_bytes", table.entry_bytes},
                    {"bounded", table.bounded},
                    {"entries", std::move(entries)}});
  }
  return list;
}

// An access has the text of the instruction that it belongs to.
Json accesses_json(const ExplainedFunction &function) {
  std::vector<const std::string *> text_of(function.accesses.size());
  for (const ExplainedLine &line : function.lines)
    for (uint32_t index : line.accesses)
      if (index < text_of.size())
        text_of[index] = &line.text;
  Json list = Json::array();
  for (size_t index = 0; index < function.accesses.size(); index++) {
    if (!text_of[index]) // nothing leads to it
      continue;
    const ExplainedAccess &access = function.accesses[index];
    list.push_back({{"pc", address_text(access.pc)},
                    {"text", *text_of[index]},
                    {"kind", access.write ? "write" : "read"},
                    {"size", access.size ? Json(access.size) : Json(nullptr)},
                    {"form", text_or_null(access.form)},
                    {"affine", access.affine},
                    {"stack", access.stack},
                    {"masked", access.masked},
                    {"object", text_or_null(access.object)},
                    {"loop", index_or_null(access.loop)},
                    {"stride", value_or_null(access.stride)},
                    {"footprint", value_or_null(access.footprint)},
                    {"why_not_affine", text_or_null(access.why_not_affine)},
                    {"depth", access.depth}});
  }
  return list;
}

Json branches_json(const ExplainedFunction &function) {
  Json list = Json::array();
  for (const ExplainedLine &line : function.lines)
    if (line.is_branch)
      list.push_back({{"pc", address_text(line.pc)},
                      {"text", line.text},
                      {"condition", text_or_null(line.condition)},
                      {"depth", line.depth}});
  return list;
}

Json definitions_json(const ExplainedFunction &function) {
  Json list = Json::array();
  for (const analyze::ExplainedDefinition &definition : function.definitions)
    list.push_back({{"name", definition.name},
                    {"where", address_text(definition.pc)},
                    {"what", definition.what},
                    {"logged", definition.logged}});
  return list;
}

Json function_json(const ExplainedFunction &function, bool accesses) {
  const analyze::ExplainedFigures &figures = function.figures;
  Json json = Json::object();
  auto &members = json.get_ref<Json::object_t &>();
  members.reserve(28);
  // There are a hundred thousand functions: {{"name", …}, …} would make an array of each member first.
  auto put = [&members](const char *key, Json value) {
    members.emplace_back(key, std::move(value));
  };
  put("name", function.name);
  put("linkage_name", text_or_null(function.linkage_name));
  put("address", address_text(function.address));
  put("bytes", function.bytes);
  put("understood", function.understood);
  put("why_not", text_or_null(function.why_not));
  put("why_not_meaning", text_or_null(function.why_not_meaning));
  put("where", function.understood ? Json(nullptr) : Json(address_text(function.where)));
  put("instruction_count", figures.instructions);
  put("access_count", figures.accesses);
  put("with_form_count", figures.with_form);
  put("affine_count", figures.affine);
  put("affine_share", share(figures.affine, figures.accesses));
  put("definition_count", figures.definitions);
  put("argument_count", figures.arguments);
  put("in_loops_count", figures.in_loops);
  put("affine_in_loops_count", figures.affine_in_loops);
  put("movable", function.immovable.name.empty());
  put("why_not_movable", text_or_null(function.immovable.name));
  put("why_not_movable_meaning", text_or_null(function.immovable.meaning));
  put("loops", loops_json(function, accesses));
  if (accesses) {
    put("instructions", instructions_json(function));
    put("blocks", blocks_json(function));
    put("edges", edges_json(function));
    put("jump_tables", tables_json(function));
    put("accesses", accesses_json(function));
    put("branches", branches_json(function));
    put("definitions", definitions_json(function));
  }
  return json;
}

// What is said of a file is said of its functions: bytes that belong to none are not in any figure.
Json losses_json(const ExplainSummary &s) {
  Json list = Json::array();
  uint64_t unknown = s.executable_bytes - s.bytes_in_functions - s.padding_bytes;
  if (unknown)
    list.push_back({{"kind", "code_in_no_function"},
                    {"count", unknown},
                    {"unit", "bytes"},
                    {"why", "data among code, or code that nothing known leads to"},
                    {"remedy", "a file with symbols or unwind tables says more"}});
  return list;
}

} // namespace

Document explain_document(const analyze::Explanation &explanation, const FunctionQuery &query,
                          unsigned top, bool accesses) {
  SelectedFunctions selected = selected_functions(explanation, query);
  Document document;
  document.put("schema", "assay.explain/1");
  document.put("program", {{"path", explanation.path},
                           {"arguments", Json::array()},
                           {"build_id", explanation.build_id}});
  document.put("machine", nullptr);
  document.put("unit",
               "one instruction, or one access of it, as it stands in the file; nothing was run");
  document.put("losses", losses_json(explanation.summary));
  document.put("coverage", {{"understood_share", share(explanation.summary.understood,
                                                       explanation.summary.functions)}});
  document.put("findings", Json::array());
  document.put("summary", summary_json(explanation));
  document.put("filtered_out", {{"functions", selected.filtered_out}});
  const size_t rows = shown(selected.functions.size(), top);
  document.list("functions", rows,
                [functions = std::move(selected.functions), accesses](size_t index) {
                  return function_json(*functions[index], accesses);
                });
  return document;
}

} // namespace report
