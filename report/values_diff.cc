// A value that is a place in code has a name only in the recordings that hold it. So its text comes
// from the newer side if that has a name, else from the older one. The rows and their order are
// those of analyze/values_diff.cc.

#include "report/values_diff.h"

#include "base/units.h"
#include "report/json.h"
#include "report/text_parts.h"
#include "report/values_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

constexpr size_t kUsualRows = 12;

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string value_of(const analyze::ValueChange &change) {
  const analyze::ValueShare &share = change.after.name.empty() ? change.before : change.after;
  const std::string text = value_text(share, *change.list, change.is_stride);
  return change.instead && !change.instead->name.empty() == !share.name.empty()
             ? fmt::format("{}, now {} {}", text,
                           value_text(*change.instead, *change.list, change.is_stride),
                           percent(change.instead->share))
             : text;
}

// With its file where functions of that name in several files differ: files are compared by their names.
std::string name_in_file(const analyze::ValuesDiff &diff, const analyze::TimeChange &change) {
  const std::string name = brief_function(change.function, 60);
  const bool is_alone =
      std::ranges::count(diff.functions, change.function, &analyze::TimeChange::function) == 1;
  return is_alone ? name : fmt::format("{} ({})", name, printable(change.file));
}

} // namespace

Json values_diff_json(const analyze::ValuesDiff &diff, unsigned top) {
  Json values = Json::array(), functions = Json::array();
  for (size_t i = 0; i < diff.values.size() && (top == 0 || i < top); i++) {
    const analyze::ValueChange &each = diff.values[i];
    values.push_back({{"function", each.function->name},
                      {"offset", fmt::format("{:#x}", each.instruction->offset)},
                      {"text", each.instruction->text},
                      {"subject", each.subject},
                      {"value", fmt::format("{:#x}", each.before.value)},
                      {"before_share", each.before.share},
                      {"after_share", each.after.share}});
  }
  for (size_t i = 0; i < diff.functions.size() && (top == 0 || i < top); i++)
    functions.push_back({{"function", diff.functions[i].function},
                         {"file", diff.functions[i].file},
                         {"before_share", diff.functions[i].before},
                         {"after_share", diff.functions[i].after}});
  return {{"samples", {{"before", diff.samples_before}, {"after", diff.samples_after}}},
          {"values", std::move(values)},
          {"functions", std::move(functions)}};
}

std::string values_diff_text(const analyze::ValuesDiff &diff, unsigned top, const Style &style) {
  const size_t most = top ? top : kUsualRows;
  std::string out =
      fmt::format("Samples of values: {} before, {} after; what differs beyond chance:\n",
                  base::format_count(double(diff.samples_before)),
                  base::format_count(double(diff.samples_after)));
  if (!diff.program_after.empty())
    out += fmt::format("  {} and {} were compared as one file, the program that was run\n",
                       printable(diff.program_before), printable(diff.program_after));
  if (diff.same())
    return out + "  nothing\n";
  Table times;
  times.column("before", Table::Align::right);
  times.column("after", Table::Align::right);
  times.column("function", Table::Align::left);
  for (size_t i = 0; i < std::min(most, diff.functions.size()); i++)
    times.row({percent(diff.functions[i].before), percent(diff.functions[i].after),
               name_in_file(diff, diff.functions[i])});
  if (!diff.functions.empty())
    out += "\n" + style.strong("Where does more or less of the time go?") + "\n" +
           times.text(style) +
           more_text(diff.functions.size() - std::min(most, diff.functions.size()), style);
  Table values;
  values.column("before", Table::Align::right);
  values.column("after", Table::Align::right);
  values.column("value", Table::Align::left);
  values.column("of", Table::Align::left);
  values.column("function", Table::Align::left);
  values.column("instruction", Table::Align::left);
  for (size_t i = 0; i < std::min(most, diff.values.size()); i++) {
    const analyze::ValueChange &each = diff.values[i];
    values.row({percent(each.before.share), percent(each.after.share), value_of(each), each.subject,
                brief_function(each.function->name, 24), shortened(each.instruction->text, 34)});
  }
  if (!diff.values.empty())
    out += "\n" + style.strong("Which values come more or less often?") + "\n" +
           values.text(style) +
           more_text(diff.values.size() - std::min(most, diff.values.size()), style);
  return out;
}

} // namespace report
