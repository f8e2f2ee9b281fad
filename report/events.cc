// Events: people see a row for each name and line, programs one for each name and call stack.
//
// Several stacks with one name and line would be rows that look the same, so text adds them up and
// sorts by weight. JSON adds up nothing: programs can do that themselves. Without events there is
// no table at all.

#include "report/events.h"

#include "base/stable_sort.h"
#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace report {

std::string events_text(const analyze::HeapResult &result, unsigned top, const Style &style) {
  struct Row {
    std::string name, site;
    uint64_t count = 0, weight = 0;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const analyze::EventRow &event : result.events) {
    std::string site = analyze::brief_place(event.owner_frame());
    Row &row = rows.try_emplace({event.name, site}, Row{event.name, site}).first->second;
    row.count += event.count;
    row.weight += event.weight;
  }
  if (rows.empty())
    return "";
  std::vector<Row> ordered;
  for (auto &[key, row] : rows)
    ordered.push_back(std::move(row));
  base::stable_sort(ordered, [](const Row &a, const Row &b) {
    return std::pair(a.weight, a.count) > std::pair(b.weight, b.count);
  });
  Table table;
  for (const char *heading : {"count", "weight", "each"})
    table.column(heading, Table::Align::right);
  table.column("event", Table::Align::left);
  table.column("site", Table::Align::left);
  const size_t lines = shown(ordered.size(), top);
  constexpr unsigned kNameColumns = 32;
  for (size_t index = 0; index < lines; index++) {
    const Row &row = ordered[index];
    table.row({base::format_count(double(row.count)), base::format_count(double(row.weight)),
               row.count ? base::format_count(double(row.weight) / double(row.count)) : "",
               shortened(printable(row.name), kNameColumns), row.site});
  }
  std::string text =
      "\n" + style.strong("What did the program report of itself?") + "\n" + table.text(style);
  return text + more_text(ordered.size() - lines, style);
}

Json event_json(const analyze::EventRow &event) {
  return {{"name", event.name},
          {"count", event.count},
          {"weight", event.weight},
          {"owner", event.owner},
          {"stack", stack_json(event.frames)}};
}

} // namespace report
