// `assay report` for people: what to change, then when (phases, and what fills them), then what
// (types, allocation sites).
//
// The first screen must be worth acting on: five findings, each one sentence, what to do, and below
// it what each tool says, by the tool's name, so that a reader knows which command to ask next.
// Tables follow the same order of things. Phases are shown by their time, in the order of the run:
// of a program that goes back and forth the first ones are many alike.

#include "report/joined_report.h"

#include "analyze/place.h"
#include "analyze/type_names.h"
#include "base/stable_sort.h"
#include "base/units.h"
#include "report/heap_report.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using analyze::JoinedPhase;
using analyze::JoinedResult;
using analyze::JoinedRow;
using Align = Table::Align;

constexpr double kWorthAScreen = .005; // of the run

std::string count(uint64_t value) {
  return base::format_count(double(value));
}

class JoinedText {
public:
  JoinedText(const JoinedResult &result, const JoinedTextOptions &options, const Style &style)
      : result_(result), options_(options), style_(style) {}

  std::string text() {
    header();
    if (result_.nothing_matches()) {
      out_ += fmt::format("  --filter '{}' matches nothing of it\n", printable(result_.filter));
      return std::move(out_);
    }
    if (options_.sort.empty()) {
      findings();
      phases();
    }
    const auto &order = analyze::joined_order(options_.sort);
    rows(std::string("Which types ") + order.question, result_.types, false);
    rows(std::string("Which allocation sites and variables ") + order.question, result_.sites,
         true);
    missing();
    return std::move(out_);
  }

private:
  void heading(const std::string &text) { out_ += "\n" + style_.strong(text) + "\n"; }

  std::string bytes(uint64_t lines) const {
    return base::format_bytes(double(lines * result_.line_bytes));
  }

  void header() {
    out_ +=
        style_.strong("assay report: " + command_text(result_.process, result_.programs)) + "\n";
    std::string tools;
    for (const analyze::ToolState &tool : result_.tools)
      if (tool.recorded)
        tools += (tools.empty() ? "" : ", ") + tool.name;
    out_ += fmt::format(
        "  from {}{}{}\n", tools.empty() ? "no tool" : tools,
        result_.processes > 1 ? fmt::format("; {} processes", result_.processes) : "",
        result_.programs.size() > 1 ? fmt::format(" of {} programs", result_.programs.size()) : "");
    if (const analyze::HeapResult *heap = result_.from.heap)
      out_ += fmt::format("  heap: {}\n", heap_run_text(*heap));
    if (!result_.phases.empty()) {
      const analyze::WorkingSetResult &set = *result_.phases.front().set;
      out_ += fmt::format("  working set: {} on average, {} at its largest, {} in all, {}\n",
                          base::format_bytes(set.mean_lines * double(set.line_bytes)),
                          base::format_bytes(double(set.bytes(set.snapshots[set.largest].lines))),
                          base::format_bytes(double(set.bytes(set.total_lines))),
                          base::with_noun(set.phases.size(), "phase"));
    }
    if (!result_.filter.empty() && !result_.nothing_matches())
      out_ += fmt::format("  --filter '{}' keeps {} of {} and {} of {}; amounts and shares are "
                          "those of the whole run\n",
                          printable(result_.filter), result_.types.size(),
                          base::with_noun(result_.types.size() + result_.filtered_types, "type"),
                          result_.sites.size(),
                          base::with_noun(result_.sites.size() + result_.filtered_sites, "site"));
  }

  void findings() {
    heading("What is worth changing?");
    if (result_.findings.empty()) {
      out_ += "  nothing stands out, or too little was measured to say so\n";
      return;
    }
    const auto worth = static_cast<size_t>(
        std::count_if(result_.findings.begin(), result_.findings.end(),
                      [](auto &each) { return each.finding.weight >= kWorthAScreen; }));
    if (!worth)
      out_ += fmt::format("  nothing stands out: each has less than {} of the run at stake\n",
                          base::format_share(kWorthAScreen));
    const size_t shown = std::min<size_t>(options_.top, worth);
    for (size_t i = 0; i < shown; i++)
      finding(i + 1, result_.findings[i]);
    out_ += more_text(result_.findings.size() - shown, style_);
  }

  void finding(size_t number, const analyze::JoinedFinding &each) {
    out_ += fmt::format("  {}. {}\n     {} {}\n     at stake: {} of the run\n", number,
                        printable(each.finding.message), style_.strong("do:"),
                        printable(each.finding.action), base::format_share(each.finding.weight));
    for (const analyze::ToolFact &fact : each.facts)
      out_ += fmt::format("     {} {}\n", style_.faint(fact.tool + ":"), printable(fact.text));
    if (!each.finding.qualified_by.empty())
      out_ += fmt::format("     less certain because of: {}\n",
                          fmt::join(each.finding.qualified_by, ", "));
  }

  static std::string used(const std::optional<double> &share) {
    return share ? base::format_share(*share) : "";
  }

  // What the row's type needs, in a few columns.
  static std::string advice(const JoinedRow &row) {
    constexpr size_t kColumns = 14;
    std::string text = row.false_sharing ? "false sharing" : "";
    for (const std::string &name : row.first_members()) {
      if (text.size() + name.size() + 2 > kColumns && !text.empty())
        return text + ", …";
      text += (text.empty() ? "" : ", ") + name;
    }
    return text;
  }

  bool has_advice() const {
    return std::any_of(result_.types.begin(), result_.types.end(),
                       [](const JoinedRow &row) { return !advice(row).empty(); });
  }

  // Indices of those that are shown, in the order of the run.
  std::vector<size_t> longest_phases() const {
    std::vector<size_t> order;
    for (size_t i = 0; i < result_.phases.size(); i++)
      if (result_.phases[i].set == result_.phases.front().set)
        order.push_back(i);
    base::stable_sort(order, [&](size_t a, size_t b) {
      return result_.phases[a].time_share() > result_.phases[b].time_share();
    });
    order.resize(std::min<size_t>(order.size(), options_.top));
    std::sort(order.begin(), order.end());
    return order;
  }

  void phases() {
    if (result_.phases.empty())
      return;
    heading("What does each phase work on?");
    Table table;
    table.column("phase", Align::left);
    // Of objects it is not known when they are accessed, only how often in the whole run.
    const char *accesses = result_.phases.size() > 1 ? "accesses in all" : "accesses";
    for (const char *name : {"time", "bytes", "fits", "used", accesses})
      table.column(name, Align::right);
    if (has_advice())
      table.column("put first", Align::left);
    table.column("in, and on", Align::left);
    const std::vector<size_t> shown = longest_phases();
    for (size_t i : shown)
      phase(table, result_.phases[i]);
    out_ += table.text(style_);
    out_ += more_text(result_.phases.size() - shown.size(), style_);
  }

  // A row of the phase, and one of each owner that fills it.
  void phase(Table &table, const JoinedPhase &phase) {
    constexpr size_t kMaxOwners = 3;
    constexpr double kMinShare = .05;
    const analyze::Phase &lines = *phase.phase;
    auto add = [&](std::vector<std::string> cells, const JoinedRow *row, std::string name) {
      if (has_advice())
        cells.push_back(row ? advice(*row) : "");
      cells.push_back(std::move(name));
      table.row(std::move(cells));
    };
    add({std::to_string(phase.number), base::format_share(phase.time_share()),
         bytes(lines.mean_lines), phase.fits, "", ""},
        nullptr, lines.functions.empty() ? "" : analyze::short_name(lines.functions.front().first));
    for (size_t i = 0; i < std::min(kMaxOwners, phase.owners.size()); i++) {
      const analyze::PhaseOwner &owner = phase.owners[i];
      if (double(owner.lines) < kMinShare * double(lines.mean_lines))
        break;
      const JoinedRow *row = owner.row ? &result_.sites[*owner.row] : nullptr;
      add({"", "", bytes(owner.lines), "", row ? used(row->used_share()) : "",
           row && row->has_accesses() ? count(row->heap->accesses()) : ""},
          row, "- " + (row ? site_text(*row) : full_name(*owner.owner)));
    }
  }

  void rows(const std::string &question, const std::vector<JoinedRow> &rows, bool are_sites) {
    const bool any_name = are_sites || std::any_of(rows.begin(), rows.end(),
                                                   [](auto &row) { return !row.type.empty(); });
    if (rows.empty() || !any_name)
      return;
    heading(question);
    Table table;
    const bool heap = result_.from.heap != nullptr, set = result_.from.workingsets != nullptr;
    // Names of sites are long: they have the columns that say what to look at, and types all.
    if (heap) {
      table.column("objects", Align::right);
      if (!are_sites)
        table.column("bytes", Align::right);
      table.column("at peak", Align::right);
      if (!are_sites)
        table.column("lifetime", Align::right);
      table.column("accesses", Align::right);
    }
    if (set)
      table.column("in set", Align::right);
    table.column("used", Align::right);
    if (has_advice())
      table.column("put first", Align::left);
    table.column(are_sites ? "site" : "type", Align::left);
    const size_t shown = std::min<size_t>(options_.top, rows.size());
    for (size_t i = 0; i < shown; i++) {
      const JoinedRow &row = rows[i];
      std::vector<std::string> cells;
      if (heap)
        cells = heap_cells(row, are_sites);
      if (set)
        cells.push_back(row.set ? bytes(row.set->most_lines) : "");
      cells.push_back(used(row.used_share()));
      if (has_advice())
        cells.push_back(advice(row));
      cells.push_back(are_sites ? site_text(row) : type_text(row));
      table.row(std::move(cells));
    }
    out_ += table.text(style_);
    out_ += more_text(rows.size() - shown, style_);
  }

  std::vector<std::string> heap_cells(const JoinedRow &row, bool is_site) const {
    if (!row.heap) {
      std::vector<std::string> nothing(is_site ? 3 : 5);
      if (row.fields)
        nothing.back() = count(row.fields->accesses());
      return nothing;
    }
    std::vector<std::string> cells = {count(row.heap->all.alloc_count)};
    if (!is_site)
      cells.push_back(base::format_bytes(double(row.heap->all.size_total)));
    cells.push_back(result_.from.heap->peak_is_divided
                        ? base::format_bytes(double(row.heap->at_peak_bytes))
                        : "-");
    if (!is_site)
      cells.push_back(base::format_duration_us(row.heap->mean_lifetime_us()));
    cells.push_back(row.has_accesses() ? count(row.heap->accesses()) : "-");
    return cells;
  }

  // As tables of other reports have it: "Node in Tree::grow at tree.cc:16".
  static std::string site_text(const JoinedRow &row) {
    if (row.kind != "heap")
      return subject_text(row);
    const size_t at = std::min(row.site.rfind(" at "), row.site.size());
    analyze::Frame frame;
    frame.function = row.site.substr(0, at);
    const std::string site = analyze::brief_place(frame) + row.site.substr(at);
    constexpr unsigned kTypeColumns = 28;
    return row.type.empty()
               ? site
               : shortened(analyze::short_type(row.type), kTypeColumns) + " in " + site;
  }

  static std::string type_text(const JoinedRow &row) {
    if (row.type.empty())
      return "(type unknown)";
    return analyze::short_type(row.type) + (row.fields ? " " + row.fields->place() : "");
  }

  void missing() {
    std::string text;
    for (const analyze::ToolState &tool : result_.tools)
      if (!tool.recorded)
        text += fmt::format("  {} was not recorded: {}\n", tool.name,
                            printable(recording_command(result_, tool)));
    for (auto [kind, times] : result_.losses)
      text += loss_text(kind, times);
    for (const std::string &note : result_.notes)
      text += "  " + printable(note) + "\n";
    if (text.empty())
      return;
    heading("What is missing");
    out_ += text;
  }

  const JoinedResult &result_;
  const JoinedTextOptions &options_;
  const Style &style_;
  std::string out_;
};

} // namespace

std::string recording_command(const JoinedResult &result, const analyze::ToolState &tool) {
  if (!tool.is_compiled_in)
    return fmt::format("assay {0} record -o {0}.assay -- {1}, then name {0}.assay beside the "
                       "profile",
                       tool.name,
                       result.process.executable.empty() ? "./app" : command_text(result.process));
  std::string tools;
  for (const analyze::ToolState &each : result.tools)
    if (each.is_compiled_in)
      tools += (tools.empty() ? "" : ",") + each.name;
  return fmt::format("build the program with -fassay={}, and run it again", tools);
}

std::string joined_text(const JoinedResult &result, const JoinedTextOptions &options,
                        const Style &style) {
  return JoinedText(result, options, style).text();
}

} // namespace report
