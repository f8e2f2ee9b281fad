// Accesses outside the heap: a table of globals, a table of stacks.
//
// They stand beside the tables of sites and not in them: a global is never allocated, so that all
// columns but its accesses would be empty there.

#include "report/non_heap.h"

#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using Align = Table::Align;

std::string count(uint64_t value) {
  return base::format_count(static_cast<double>(value));
}

std::string globals_text(const analyze::HeapResult &result, unsigned top, const Style &style) {
  Table table;
  table.column("accesses", Align::right);
  if (result.reads_apart) {
    table.column("loads", Align::right);
    table.column("stores", Align::right);
  }
  table.column("size", Align::right);
  table.column("used", Align::right);
  table.column("global", Align::left);
  const size_t rows = shown(result.globals.size(), top);
  for (size_t index = 0; index < rows; index++) {
    const analyze::GlobalRow &row = result.globals[index];
    std::vector<std::string> cells = {count(row.accesses())};
    if (result.reads_apart) {
      cells.push_back(count(row.reads));
      cells.push_back(count(row.writes));
    }
    cells.push_back(row.size ? base::format_bytes(double(row.size)) : "");
    cells.push_back(row.size ? base::format_share(row.used_share()) : "");
    cells.push_back(
        row.line ? fmt::format("{} at {}:{}", row.name, analyze::base_name(row.file), row.line)
                 : row.name);
    table.row(std::move(cells));
  }
  std::string text = "\n" + style.strong("Which globals are used most?") + "\n" + table.text(style);
  return text + more_text(result.globals.size() - rows, style);
}

std::string stacks_text(const analyze::HeapResult &result, unsigned top, const Style &style) {
  Table table;
  table.column("thread", Align::right);
  table.column("accesses", Align::right);
  if (result.reads_apart) {
    table.column("loads", Align::right);
    table.column("stores", Align::right);
  }
  table.column("deepest", Align::right);
  const size_t rows = shown(result.stacks.size(), top);
  for (size_t index = 0; index < rows; index++) {
    const analyze::StackRow &row = result.stacks[index];
    std::vector<std::string> cells = {fmt::format("{}", row.thread), count(row.reads + row.writes)};
    if (result.reads_apart) {
      cells.push_back(count(row.reads));
      cells.push_back(count(row.writes));
    }
    cells.push_back(base::format_bytes(double(row.deepest_bytes)));
    table.row(std::move(cells));
  }
  std::string text =
      "\n" + style.strong("How is the stack used, by thread?") + "\n" + table.text(style);
  return text + more_text(result.stacks.size() - rows, style);
}

} // namespace

std::string non_heap_text(const analyze::HeapResult &result, unsigned top, const Style &style) {
  std::string text;
  if (!result.globals.empty())
    text += globals_text(result, top, style);
  if (!result.stacks.empty())
    text += stacks_text(result, top, style);
  return text;
}

Json globals_json(const analyze::HeapResult &result) {
  Json list = Json::array();
  for (const analyze::GlobalRow &row : result.globals) {
    Json json = {{"name", row.name}, {"module", row.module}};
    json["size"] = row.size ? Json(row.size) : Json(nullptr);
    put_accesses(json, row.reads, row.writes, result.reads_apart);
    json["touched_bytes"] = row.touched_bytes;
    json["used_share"] = row.size ? Json(row.used_share()) : Json(nullptr);
    json["file"] = row.file;
    json["line"] = row.line;
    list.push_back(std::move(json));
  }
  return list;
}

Json stacks_json(const analyze::HeapResult &result) {
  Json list = Json::array();
  for (const analyze::StackRow &row : result.stacks) {
    Json json = {{"thread", row.thread}};
    put_accesses(json, row.reads, row.writes, result.reads_apart);
    json["deepest_bytes"] = row.deepest_bytes;
    list.push_back(std::move(json));
  }
  return list;
}

} // namespace report
