// `assay values` for people. A share stands with its value; where its interval is wide, the interval stands as well.
//
// Lists are sorted by what they could tell: the lower end of the first share, times the values
// seen, and more where the function has many samples. So a share that a few samples made is not on
// top. Small numbers of either sign stand as numbers, others in hexadecimal. Below each answer
// stands what is missing, because samples by time show slow code too often, and some code not at
// all.

#include "report/values_report.h"

#include "abi/records.h"
#include "abi/samples.h"
#include "base/stable_sort.h"
#include "base/units.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using analyze::ValueFunction;
using analyze::ValueInstruction;
using analyze::ValueList;
using analyze::ValueShare;
using analyze::ValuesResult;
using Align = Table::Align;

constexpr double kWide = .02; // half of an interval that is worth saying

std::string count(uint64_t value) {
  return base::format_count(double(value));
}
std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string shares_text(const std::vector<ValueShare> &shares, const ValueList &list,
                        bool is_stride, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(most, shares.size()); i++) {
    const ValueShare &share = shares[i];
    text += fmt::format("{}{} {}", i ? ", " : "", percent(share.share),
                        value_text(share, list, is_stride));
    const double half = (share.high - share.low) / 2;
    if (half > kWide)
      text += fmt::format(" (±{:.0f})", 100 * half);
  }
  if (shares.size() > most)
    text += ", …";
  return text;
}

std::string scope_text(const ValuesResult &result) {
  const auto &sampling = result.process.sampling;
  if (!sampling)
    return "";
  switch (sampling->scope) {
  case ASSAY_SAMPLING_PART:
  case ASSAY_SAMPLING_SYSTEM: return "all processes";
  case ASSAY_SAMPLING_PROCESS:
    return fmt::format("process {} {}", result.process.pid, result.process.executable);
  default: return command_text(result.process, result.programs);
  }
}

// Who interpreted; several, where recordings were merged.
std::string collector_text(const ValuesResult &result) {
  static const std::pair<uint32_t, const char *> kWho[] = {
      {ASSAY_COLLECTOR_KERNEL, "in the kernel"},
      {ASSAY_COLLECTOR_UPCALL, "in the program, by perf events"},
      {ASSAY_COLLECTOR_TIMER, "in the program, by timers"}};
  std::string text;
  for (const auto &[kind, where] : kWho)
    if (result.collectors >> kind & 1)
      text += (text.empty() ? "interpreted " : ", and ") + std::string(where);
  return text;
}

void header(const ValuesResult &result, std::string &out, const Style &style) {
  out += style.strong("assay values:") + " " + printable(scope_text(result)) + "\n";
  const auto &sampling = result.process.sampling;
  if (!sampling)
    return;
  out += fmt::format(
      "  {} in {}, {} a second of each processor that ran it; {} of each on average, {}\n",
      base::format_counted(double(result.samples), "sample"),
      base::format_duration_us(double(result.duration_us)), sampling->hertz,
      base::with_noun(sampling->instructions, "instruction"), collector_text(result));
}

// Samples by file or function, in the order that they have.
template <class Item, class Name>
std::string time_text(const char *question, const char *what, const std::vector<Item> &items,
                      size_t top, uint64_t all, const Style &style, const Name &name) {
  Table table;
  table.column("samples", Align::right);
  table.column("share", Align::right);
  table.column(what, Align::left);
  const size_t rows = std::min(top, items.size());
  for (size_t i = 0; i < rows; i++)
    table.row({count(items[i].interrupts),
               percent(double(items[i].interrupts) / double(std::max<uint64_t>(all, 1))),
               name(items[i])});
  return "\n" + style.strong(question) + "\n" + table.text(style) +
         more_text(items.size() - rows, style);
}

void limits(const ValuesResult &result, std::string &out, const Style &style) {
  out += "\n" + style.strong("What is missing") + "\n";
  Table table;
  table.column("samples", Align::right);
  table.column("", Align::right);
  table.column("interpreting ended by", Align::left);
  for (const auto &[meaning, number] : result.ends)
    table.row({count(number),
               percent(double(number) / double(std::max<uint64_t>(result.samples, 1))), meaning});
  out += table.text(style);
  for (auto [kind, times] : result.losses)
    out += loss_text(kind, times) + "\n";
  for (const std::string &note : result.notes)
    out += "  " + printable(note) + "\n";
  out += style.faint("  Samples are taken by time: instructions after slow ones are sampled more "
                     "often, so a value that makes "
                     "code slow\n  is over-reported; less with --even or --skip 256 "
                     "(docs/values.md). Not measured: ") +
         style.faint(result.has_latencies ? "" : "latencies, ") +
         style.faint("misses of the instruction cache, mispredicted branches.\n  Floating point is "
                     "not interpreted; its values come from loads.") +
         "\n";
  if (std::any_of(result.functions.begin(), result.functions.end(),
                  [](const ValueFunction &each) { return each.module_path == "[kernel]"; }))
    out += style.faint("  The kernel is not interrupted while it has interrupts disabled: its "
                       "samples pile up where it enables them again.") +
           "\n";
  if (result.has_latencies)
    out +=
        style.faint("  Loads were timed by the handler of an interrupt: what it reads itself is in "
                    "the cache afterwards, and has\n  displaced something else, so a few loads "
                    "look nearer or farther than they are.") +
        "\n";
}

// What stands behind its name: the module and the source file, where others have that name.
std::string apart_text(const ValuesResult &result, const ValueFunction &function) {
  const bool is_elsewhere = std::ranges::any_of(result.functions, [&](const ValueFunction &other) {
    return other.name == function.name && other.module != function.module;
  });
  std::string others = is_elsewhere ? analyze::base_name(function.module_path) : "";
  if (!function.told_apart.empty())
    others += (others.empty() ? "" : ", ") + function.told_apart;
  return others.empty() ? "" : fmt::format(" ({})", printable(others));
}

// How much a list's values could tell: the certain share of the first one, by how often the code runs.
struct Row {
  const ValueFunction *function;
  const ValueInstruction *instruction;
  const ValueList *list;
  double weight;
};

} // namespace

std::string value_text(const ValueShare &share, const ValueList &list, bool is_stride) {
  if (!share.name.empty())
    return printable(share.name);
  const auto number = static_cast<int64_t>(share.value);
  if (is_stride)
    return fmt::format("{:+}", number);
  if (assay_value_is(list.kind) == ASSAY_VALUE_IS_truth)
    return share.value ? "yes" : "no";
  return analyze::number_text(share.value, list.bytes);
}

std::string hot_text(const ValueList &list, size_t most) {
  std::string text;
  if (assay_value_is(list.kind) == ASSAY_VALUE_IS_truth)
    return fmt::format("{}: {}", list.subject, percent(list.taken_share));
  if (assay_value_is(list.kind) == ASSAY_VALUE_IS_levels) { // (94.3% L1)(3.6% L2)
    for (const ValueShare &share : list.hot)
      text += fmt::format("({:.1f}% {})", 100 * share.share, share.name);
    return text;
  }
  if (!list.hot.empty())
    text = list.subject + ": " + shares_text(list.hot, list, false, most);
  if (!list.strides.empty())
    text += (text.empty() ? "" : "; ") + std::string("stride: ") +
            shares_text(list.strides, list, true, 2);
  return text;
}

// As many of the values as there is room for, `most` at most: one that is cut would be another one.
template <typename Text> std::string fitting(Text text, size_t most, unsigned width) {
  for (; most > 1; most--)
    if (std::string all = text(most); columns_of(all) <= width)
      return all;
  return text(1);
}
std::string fitting_hot_text(const ValueList &list, unsigned width) {
  return fitting([&](size_t most) { return hot_text(list, most); }, 3, width);
}

// Where functions return to whose callers were asked for, not only those at their begin: each at its
// instruction that was seen most often. Empty: of none.
std::string callers_text(const ValuesResult &result, unsigned top, const Style &style) {
  Table callers;
  callers.column("seen", Align::right);
  callers.column("function", Align::left);
  callers.column("callers", Align::left);
  size_t rows = 0;
  for (const ValueFunction &function : result.functions) {
    const ValueList *most = nullptr;
    size_t instructions = 0;
    for (const ValueInstruction &instruction : function.instructions)
      if (const auto list =
              std::ranges::find(instruction.lists, ASSAY_VALUE_caller, &ValueList::kind);
          list != instruction.lists.end() && !list->hot.empty()) {
        instructions++;
        if (!most || list->values > most->values)
          most = &*list;
      }
    if (instructions > 1 && rows++ < top)
      callers.row(
          {count(most->values), brief_function(function.name, 24) + apart_text(result, function)},
          [most](unsigned width) {
            return fitting(
                [most](size_t number) { return shares_text(most->hot, *most, false, number); }, 4,
                width);
          });
  }
  if (rows == 0)
    return "";
  return "\n" + style.strong("Who calls them?") + "\n" + callers.text(style) +
         more_text(rows - std::min<size_t>(rows, top), style);
}

std::string values_text(const ValuesResult &result, unsigned top, const Style &style) {
  std::string out;
  header(result, out, style);
  out += findings_text(result.findings, top ? top : 6, style);
  const auto all = double(std::max<uint64_t>(result.samples, 1));
  if (result.executables.size() > 1)
    out += time_text("Which files does the time go to?", "file", result.executables, top ? top : 8,
                     result.samples, style,
                     [](const analyze::ValueExecutable &file) { return printable(file.path); });
  out += time_text("Which functions does the time go to?", "function", result.functions,
                   top ? top : 10, result.samples, style, [&](const ValueFunction &function) {
                     return printable(function.name) + apart_text(result, function);
                   });

  std::vector<Row> hot;
  for (const ValueFunction &function : result.functions)
    for (const ValueInstruction &instruction : function.instructions)
      for (const ValueList &list : instruction.lists)
        if (!list.hot.empty() && list.kind != ASSAY_VALUE_caller &&
            assay_value_is(list.kind) != ASSAY_VALUE_IS_truth &&
            assay_value_is(list.kind) != ASSAY_VALUE_IS_levels)
          hot.push_back({&function, &instruction, &list,
                         list.hot.front().low * double(list.values) *
                             (.5 + double(function.interrupts) / all)});
  base::stable_sort(hot, [](const Row &a, const Row &b) { return a.weight > b.weight; });
  out += "\n" + style.strong("Which values come again and again?") + "\n";
  Table values;
  values.column("seen", Align::right);
  values.column("function", Align::left);
  values.column("instruction", Align::left);
  values.column("values", Align::left);
  const size_t shown = std::min<size_t>(top ? top : 20, hot.size());
  for (size_t i = 0; i < shown; i++) {
    const Row &row = hot[i];
    values.row({count(row.list->values),
                brief_function(row.function->name, 24) + apart_text(result, *row.function),
                shortened(row.instruction->text, 34)},
               [&row](unsigned width) { return fitting_hot_text(*row.list, width); });
  }
  out += hot.empty() ? "  none is frequent beyond doubt; sample longer, or more often (-F)\n"
                     : values.text(style) + more_text(hot.size() - shown, style);
  out += callers_text(result, top ? top : 10, style);
  limits(result, out, style);
  return out;
}

std::string annotated_text(const ValuesResult &result, unsigned top, const Style &style) {
  std::string out;
  header(result, out, style);
  const size_t functions = std::min<size_t>(top ? top : 1, result.functions.size());
  for (size_t i = 0; i < functions; i++) {
    const ValueFunction &function = result.functions[i];
    out +=
        "\n" + style.strong(printable(function.name)) +
        (function.file.empty() ? std::string()
                               : fmt::format("  {}:{}", printable(function.file), function.line)) +
        fmt::format("   {}\n", base::format_counted(double(function.interrupts), "sample"));
    out += style.faint("  samples  executed  instruction") + "\n";
    std::string line_before;
    for (const ValueInstruction &instruction : function.instructions) {
      const std::string line =
          instruction.line
              ? fmt::format("{}:{}", analyze::base_name(instruction.file), instruction.line)
              : "";
      if (!line.empty() && line != line_before)
        out += style.faint(fmt::format("                     {}", printable(line))) + "\n";
      line_before = line;
      std::string values;
      for (const ValueList &list : instruction.lists) {
        const std::string text = "[" + hot_text(list, 3) + "]";
        // What an instruction reads and writes again has one address.
        if (text != "[]" && values.find(text) == std::string::npos)
          values += (values.empty() ? "" : "  ") + text;
      }
      out += fmt::format("  {:>7}  {:>8}  {:#x}  {:<36} {}\n",
                         instruction.interrupts ? std::to_string(instruction.interrupts) : "",
                         instruction.executions, instruction.offset, instruction.text, values);
    }
  }
  if (functions < result.functions.size())
    out += style.faint(
               fmt::format("\n  {}; name one, or use --top",
                           base::with_noun(result.functions.size() - functions, "more function"))) +
           "\n";
  limits(result, out, style);
  return out;
}

std::string conflicts_text(const ValuesResult &result, unsigned top, const Style &style) {
  std::string out;
  header(result, out, style);
  if (!result.has_conflicts)
    return out + "\nStores and loads were not compared; record with `assay values record "
                 "--conflicts -- ./app`\n";
  out += "\n" + style.strong("Which loads wait for a store?") + "\n";
  if (result.conflicts.empty())
    return out + "  none in the samples\n";
  static const char *const kKinds[] = {"", "the store wrote only part", "same low 12 bits",
                                       "store's address known late"};
  Table table;
  table.column("times", Align::right);
  table.column("of the load", Align::right);
  table.column("why", Align::left);
  table.column("load", Align::left);
  table.column("store", Align::left);
  const size_t rows = std::min<size_t>(top ? top : 20, result.conflicts.size());
  auto line = [&](const ValueFunction &function, const ValueInstruction &instruction) {
    return brief_function(function.name, 20) + apart_text(result, function) +
           (instruction.line ? fmt::format(":{}", instruction.line) : std::string());
  };
  auto text = [](const ValueInstruction &instruction) {
    return fmt::format(" {:#x} {}", instruction.offset, shortened(instruction.text, 30));
  };
  for (size_t i = 0; i < rows; i++) {
    const auto &conflict = result.conflicts[i];
    table.row({count(conflict.count), percent(conflict.share), kKinds[std::min(conflict.kind, 3u)],
               line(*conflict.load_function, *conflict.load) + text(*conflict.load),
               line(*conflict.store_function, *conflict.store)},
              text(*conflict.store));
  }
  out += table.text(style) + more_text(result.conflicts.size() - rows, style);
  return out;
}

} // namespace report
