// `assay explain` for people, of an executable: how much of it was understood; which functions it has, and which of
// them are not understood and why. Names in tables are shortened, as everywhere.

#include "report/explain.h"

#include "base/units.h"
#include "report/explain_parts.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using analyze::ExplainedFunction;
using analyze::ExplainSummary;
using analyze::Explanation;

using Align = Table::Align;

std::string ratio_text(uint64_t part, uint64_t whole) {
  return whole ? fmt::format("{:.2f}", double(part) / double(whole)) : "-";
}

class ExplainText {
public:
  ExplainText(const Explanation &explanation, const ExplainTextOptions &options, const Style &style)
      : explanation_(explanation), options_(options), style_(style),
        selected_(selected_functions(explanation, options.query)) {}

  std::string text() {
    header();
    summary();
    functions();
    not_understood();
    instructions();
    return std::move(out_);
  }

private:
  static constexpr size_t kMaxOpaque = 5;

  void heading(const std::string &text) { out_ += "\n" + style_.strong(text) + "\n"; }

  void header() {
    out_ += style_.strong(printable("assay explain: " + explanation_.path)) + "\n";
    out_ +=
        fmt::format("  build id {}; the analysis took {} of CPU time\n",
                    explanation_.build_id.empty() ? "unknown" : printable(explanation_.build_id),
                    base::format_duration_us(explanation_.cpu_seconds * 1e6));
  }

  void summary() {
    const ExplainSummary &s = explanation_.summary;
    auto count = [](uint64_t number) { return base::format_count(double(number)); };
    heading("How much of it is understood?");
    Table table;
    table.column("", Align::left);
    table.column("number", Align::right);
    table.column("share", Align::right);
    table.column("", Align::left);
    table.row({"functions", count(s.functions), "", ""});
    table.row({"  understood", count(s.understood), share_text(s.understood, s.functions),
               "every jump leads to known places"});
    for (const auto &[reason, functions] : s.why_not)
      table.row({fmt::format("  {}", reason), count(functions), share_text(functions, s.functions),
                 std::string(s.meanings.at(reason))});
    if (s.executable_bytes) {
      uint64_t unknown = s.executable_bytes - s.bytes_in_functions - s.padding_bytes;
      table.row({"executable bytes", base::format_bytes(double(s.executable_bytes)), "", ""});
      table.row({"  in functions", base::format_bytes(double(s.bytes_in_functions)),
                 share_text(s.bytes_in_functions, s.executable_bytes),
                 "the figures below are of these alone"});
      table.row({"  padding", base::format_bytes(double(s.padding_bytes)),
                 share_text(s.padding_bytes, s.executable_bytes), "between functions"});
      table.row({"  unknown", base::format_bytes(double(unknown)),
                 share_text(unknown, s.executable_bytes),
                 "data, or code that nothing known leads to"});
    }
    table.row({"bytes of code", base::format_bytes(double(s.figures.code_bytes)), "", ""});
    table.row({"  reached", base::format_bytes(double(s.figures.reached_bytes)),
               share_text(s.figures.reached_bytes, s.figures.code_bytes),
               "the rest is padding, or code that nothing known leads to"});
    table.row({"instructions", count(s.figures.instructions), "", ""});
    table.row({"  opaque", count(s.figures.opaque_instructions),
               share_text(s.figures.opaque_instructions, s.figures.instructions),
               "only what they read and write is known"});
    std::vector<std::pair<uint64_t, std::string>> opaque;
    for (const auto &[name, number] : s.opaque)
      opaque.emplace_back(number, name);
    std::sort(opaque.rbegin(), opaque.rend());
    for (size_t i = 0; i < std::min<size_t>(opaque.size(), kMaxOpaque); i++)
      table.row({"    " + opaque[i].second, count(opaque[i].first), "", ""});
    if (opaque.size() > kMaxOpaque)
      table.row({"    " + base::with_noun(opaque.size() - kMaxOpaque, "more kind"), "", "", ""});
    table.row({"loops", count(s.figures.loops), "", ""});
    table.row(
        {"jump tables", count(s.figures.jump_tables), "", "indirect jumps of switch statements"});
    table.row({"memory accesses", count(s.figures.accesses), "",
               "each read and write of an instruction"});
    table.row({"  with a form", count(s.figures.with_form),
               share_text(s.figures.with_form, s.figures.accesses),
               "the address is computed from definitions"});
    table.row({"  affine", count(s.figures.affine),
               share_text(s.figures.affine, s.figures.accesses), "changed by loop counters alone"});
    table.row({"  in loops", count(s.figures.in_loops),
               share_text(s.figures.in_loops, s.figures.accesses), "and not of the stack"});
    table.row({"    affine", count(s.figures.affine_in_loops),
               share_text(s.figures.affine_in_loops, s.figures.in_loops), "of those in loops"});
    table.row({"branches", count(s.figures.branches), "", ""});
    table.row({"  with a condition", count(s.figures.conditions),
               share_text(s.figures.conditions, s.figures.branches),
               "it follows which way they go"});
    table.row(
        {"definitions to log", count(s.figures.definitions), "",
         ratio_text(s.figures.definitions, s.figures.with_form) + " for each access with a form"});
    table.row(
        {"arguments", count(s.figures.arguments), "", "of functions: their callers know them"});
    uint64_t addresses = s.figures.accesses - s.figures.with_form,
             outcomes = s.figures.branches - s.figures.conditions,
             values = s.figures.definitions + addresses + outcomes;
    table.row({"addresses to log", count(addresses), "", "those of accesses without a form"});
    table.row({"outcomes to log", count(outcomes), "", "those of branches without a condition"});
    table.row({"values to log", count(values), "",
               "all of them: " + ratio_text(values, s.figures.accesses) + " for each access"});
    out_ += table.text(style_);
  }

  void functions() {
    heading(function_order(options_.query.sort).question);
    if (selected_.functions.empty() && selected_.filtered_out) {
      out_ +=
          fmt::format("  --filter '{}' matches none of its {}\n", printable(options_.query.filter),
                      base::with_noun(selected_.filtered_out, "function"));
      return;
    }
    size_t shown = std::min<size_t>(options_.top, selected_.functions.size());
    bool all_understood =
        std::all_of(selected_.functions.begin(),
                    selected_.functions.begin() + static_cast<std::ptrdiff_t>(shown),
                    [](const ExplainedFunction *function) { return function->understood; });
    const bool by_size = options_.query.sort == "size",
               by_loops = options_.query.sort == "in_loops";
    Table table;
    table.column("address", Align::right);
    if (by_size)
      table.column("size", Align::right);
    for (const char *name :
         {"instructions", "loops", "accesses", "in loops", "affine", "definitions"})
      if (by_loops || name != std::string_view("in loops"))
        table.column(name, Align::right);
    if (!all_understood)
      table.column("why not", Align::left);
    table.column("function", Align::left);
    for (size_t i = 0; i < shown; i++) {
      const ExplainedFunction &function = *selected_.functions[i];
      const analyze::ExplainedFigures &figures = function.figures;
      std::vector<std::string> cells = {address_text(function.address)};
      if (by_size)
        cells.push_back(base::format_bytes(double(function.bytes)));
      cells.push_back(base::format_count(double(figures.instructions)));
      if (function.understood) {
        cells.push_back(base::format_count(double(function.figures.loops)));
        cells.push_back(base::format_count(double(figures.accesses)));
        if (by_loops)
          cells.push_back(base::format_count(double(figures.in_loops)));
        cells.push_back(share_text(figures.affine, figures.accesses));
        cells.push_back(base::format_count(double(figures.definitions)));
      } else {
        cells.insert(cells.end(), by_loops ? 5 : 4, "-");
      }
      if (!all_understood)
        cells.emplace_back(function.why_not);
      cells.push_back(function.name);
      table.row(std::move(cells));
    }
    out_ += table.text(style_);
    out_ += more_text(selected_.functions.size() - shown, style_);
    if (selected_.filtered_out)
      out_ += style_.faint(
                  fmt::format("  --filter left out {}",
                              base::format_counted(double(selected_.filtered_out), "function"))) +
              "\n";
  }

  void not_understood() {
    std::vector<const ExplainedFunction *> left;
    for (const ExplainedFunction *function : selected_.functions)
      if (!function->understood)
        left.push_back(function);
    if (left.empty())
      return;
    std::sort(left.begin(), left.end(), [](const auto *a, const auto *b) {
      return a->why_not != b->why_not ? a->why_not < b->why_not : a->address < b->address;
    });
    heading("Which functions are not understood?");
    Table table;
    table.column("address", Align::right);
    table.column("size", Align::right);
    table.column("why not", Align::left);
    table.column("where", Align::right);
    table.column("function", Align::left);
    size_t shown = std::min<size_t>(options_.top, left.size());
    for (size_t i = 0; i < shown; i++)
      table.row({address_text(left[i]->address), base::format_bytes(double(left[i]->bytes)),
                 std::string(left[i]->why_not), address_text(left[i]->where), left[i]->name});
    out_ += table.text(style_);
    out_ += more_text(left.size() - shown, style_);
  }

  void instructions() {
    size_t shown = std::min(options_.lines, selected_.functions.size());
    for (size_t i = 0; i < shown; i++)
      out_ += "\n" + explained_function_text(*selected_.functions[i], "", style_);
  }

  const Explanation &explanation_;
  const ExplainTextOptions &options_;
  const Style &style_;
  SelectedFunctions selected_;
  std::string out_;
};

} // namespace

std::string explain_text(const Explanation &explanation, const ExplainTextOptions &options,
                         const Style &style) {
  return ExplainText(explanation, options, style).text();
}

} // namespace report
