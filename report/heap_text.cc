// `assay heap` for people: what to change first, then a table a question, then the call stacks.
//
// The idea: a question is printed only if somebody has a part in the answer, and the rows of all
// tables are numbered alike (#1, #2, …), so that a stack is printed once however often its row
// appears. What could not be measured stands at the end, in the words of abi/losses.def.

#include "report/heap_report.h"

#include "analyze/type_names.h"
#include "base/units.h"
#include "report/call_tree.h"
#include "report/events.h"
#include "report/non_heap.h"
#include "report/text_parts.h"
#include "report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace report {
namespace {

using analyze::HeapContextRow;
using analyze::HeapResult;
using analyze::HeapSums;
using analyze::NeededAccesses;
using Align = Table::Align;
using base::format_bytes;
using base::format_count;
using base::format_counted;
using base::format_duration_us;
using base::format_share;
using base::with_noun;

std::string count(uint64_t value) {
  return format_count(static_cast<double>(value));
}
std::string bytes(uint64_t value) {
  return format_bytes(static_cast<double>(value));
}

class HeapText {
public:
  HeapText(const HeapResult &result, const HeapTextOptions &options, const Style &style)
      : result_(result), options_(options), style_(style) {}

  std::string text() {
    header();
    if (result_.nothing_matches()) {
      what_is_missing();
      return std::move(out_);
    }
    if (options_.tree) {
      out_ += tree_text(*options_.tree, result_, style_);
      what_is_missing();
      return std::move(out_);
    }
    out_ += findings_text(result_.findings, options_.top, style_);
    if (options_.sort.empty()) {
      for (const analyze::HeapQuestion &question : analyze::heap_questions())
        if (answers_by_default(question))
          answer(question);
      groups("What is the memory used for, by type?", "type", result_.types, true);
      groups("Which modules allocate it?", "module", result_.modules, false);
      out_ += non_heap_text(result_, options_.top, style_);
      out_ += events_text(result_, options_.top, style_);
    } else {
      answer(analyze::heap_question(options_.sort));
    }
    if (options_.stacks)
      stacks();
    what_is_missing();
    return std::move(out_);
  }

private:
  bool answers_by_default(const analyze::HeapQuestion &question) const {
    if (question.worth && !question.worth(result_.totals, result_.run_us))
      return false;
    std::string key = question.key;
    return key != "bytes" && key != "count" && key != "lifetime";
  }

  void heading(const std::string &text) { out_ += "\n" + style_.strong(text) + "\n"; }

  void header() {
    std::string program = result_.processes.empty()
                              ? "(unknown program)"
                              : command_text(result_.processes.front(), result_.programs);
    out_ += style_.strong("assay heap: " + program) + "\n";
    if (result_.processes.size() > 1)
      out_ += fmt::format("  sum of {} processes{}\n", result_.processes.size(),
                          result_.programs.size() > 1
                              ? fmt::format(" of {} programs", result_.programs.size())
                              : "");
    if (result_.nothing_matches()) {
      out_ += fmt::format("  --filter '{}' matches no function, type, origin or module of its {}\n",
                          printable(result_.filter), with_noun(result_.filtered_out, "context"));
      return;
    }
    const HeapSums &all = result_.totals;
    if (result_.filtered_out)
      out_ += fmt::format(
          "  {}\n  of that --filter '{}' keeps {} of {}, {} of {}: {} still allocated at the end\n",
          heap_run_text(result_), printable(result_.filter), result_.contexts.size(),
          with_noun(result_.filtered_out + result_.contexts.size(), "context"),
          format_counted(double(all.all.alloc_count), "allocation"), bytes(all.all.size_total),
          bytes(all.live.size_total));
    else
      out_ += fmt::format("  {}; {} still allocated at the end\n", heap_run_text(result_),
                          bytes(all.live.size_total));
    if (result_.accesses_counted && all.all.alloc_count) {
      std::string apart =
          result_.reads_apart
              ? fmt::format(" ({}, {})", format_counted(double(all.all.reads), "load"),
                            format_counted(double(all.all.writes), "store"))
              : "";
      out_ += fmt::format("  {}{}; {} of the {}-byte blocks of objects were touched\n",
                          format_counted(double(all.accesses()), "access", "accesses"), apart,
                          format_share(all.used_share()), result_.block_bytes);
    }
    if (result_.suppressions)
      out_ += fmt::format("  --suppressions: {} of {} in {}, by {} of {}\n",
                          format_counted(double(all.suppressed_count), "known leak"),
                          bytes(all.suppressed_bytes),
                          with_noun(result_.suppressed_contexts, "context"),
                          result_.suppressions_used, with_noun(result_.suppressions, "pattern"));
    out_ += timeline_text(result_);
  }

  std::string label(size_t site) {
    auto [known, is_new] = numbers_.try_emplace(site, numbers_.size() + 1);
    if (is_new)
      shown_.push_back(site);
    return fmt::format("#{}", known->second);
  }

  std::string site(const HeapContextRow &row) {
    std::string text = analyze::brief_place(row);
    if (row.origin != analyze::kMallocOrigin)
      text += " (" + row.origin + ")";
    constexpr unsigned kTypeColumns = 28;
    return row.type.empty()
               ? text
               : shortened(analyze::short_type(row.type), kTypeColumns) + " in " + text;
  }

  void answer(const analyze::HeapQuestion &question) {
    if (question.needs != NeededAccesses::kNone && !result_.accesses_counted)
      return;
    auto order = ranked(result_.sites, question);
    if (order.empty()) {
      if (!options_.sort.empty()) { // it was asked for
        heading(question.question);
        out_ += result_.peak_is_divided || std::string_view(question.key) != "peak"
                    ? "  nothing\n"
                    : "  not known\n";
      }
      return;
    }
    Table table;
    std::string key = question.key;
    table.column("", Align::left);
    auto figures = figures_of(key);
    if (!result_.accesses_counted)
      std::erase_if(figures,
                    [](const Figure &figure) { return figure.needs != NeededAccesses::kNone; });
    for (const Figure &figure : figures)
      table.column(figure.heading, Align::right);
    table.column("site", Align::left);
    const size_t rows = shown(order.size(), options_.top);
    for (size_t index = 0; index < rows; index++) {
      const HeapContextRow &row = result_.sites[order[index]];
      std::vector<std::string> cells = {label(order[index])};
      for (const Figure &figure : figures)
        cells.push_back(is_known(figure.needs, row) ? figure.value(row.sums, result_) : "-");
      cells.push_back(site(row));
      table.row(std::move(cells));
    }
    heading(question.question);
    out_ += table.text(style_);
    if (rows < order.size())
      out_ += style_.faint("  " + more(order.size() - rows,
                                       fmt::format("--sort {} --top {}", key, order.size()))) +
              "\n";
  }

  struct Figure {
    const char *heading;
    std::string (*value)(const HeapSums &, const HeapResult &);
    NeededAccesses needs = NeededAccesses::kNone;
  };

  static std::string share_of(uint64_t part, uint64_t whole) {
    return format_share(whole ? double(part) / double(whole) : 0);
  }

  static std::vector<Figure> figures_of(const std::string &key) {
    static const Figure accesses = {"accesses", [](auto &s, auto &) { return count(s.accesses()); },
                                    NeededAccesses::kCounted};
    static const Figure share = {
        "share", [](auto &s, auto &r) { return share_of(s.accesses(), r.whole.accesses()); }};
    static const Figure per_byte = {"per byte", [](auto &s, auto &) {
                                      return format_count(
                                          double(s.accesses()) /
                                          double(std::max<uint64_t>(s.all.size_total, 1)));
                                    }};
    static const Figure objects = {"objects",
                                   [](auto &s, auto &) { return count(s.all.alloc_count); }};
    static const Figure size = {"bytes", [](auto &s, auto &) { return bytes(s.all.size_total); }};
    static const Figure lifetime = {
        "lifetime", [](auto &s, auto &) { return format_duration_us(s.mean_lifetime_us()); }};
    static const Figure used = {
        "used", [](auto &s, auto &) { return format_share(s.used_share()); }, NeededAccesses::kAll};
    static const Figure held = {"untouched", [](auto &s, auto &r) {
                                  return format_bytes(double(s.all.cold_byte_us_total) /
                                                      double(std::max<uint64_t>(r.run_us, 1)));
                                }};
    static const Figure wasted = {
        "unused", [](auto &s, auto &r) { return bytes(s.untouched_blocks() * r.block_bytes); }};
    static const Figure unused_bytes = {"unused",
                                        [](auto &s, auto &) { return bytes(s.untouched_bytes()); }};
    static const Figure touched = {
        "touched", [](auto &s, auto &) { return share_of(s.all.touched_bytes, s.all.size_total); }};
    static const Figure mean_size = {"size each", [](auto &s, auto &) {
                                       return format_bytes(
                                           double(s.all.size_total) /
                                           double(std::max<uint64_t>(s.all.alloc_count, 1)));
                                     }};
    static const Figure freed = {
        "freed", [](auto &s, auto &) { return count(s.all.alloc_count - s.live.alloc_count); }};
    static const Figure temporaries = {"temporary", [](auto &s, auto &) {
                                         return share_of(s.all.temporary_count, s.all.alloc_count);
                                       }};
    static const Figure reallocs = {"reallocs",
                                    [](auto &s, auto &) { return count(s.all.realloc_count); }};
    static const Figure moved = {"copied",
                                 [](auto &s, auto &) { return bytes(s.all.realloc_moved_bytes); }};
    static const Figure migrated = {"migrated",
                                    [](auto &s, auto &) { return count(s.all.migrated_cpu); }};
    static const Figure migrated_share = {
        "share", [](auto &s, auto &) { return share_of(s.all.migrated_cpu, s.all.alloc_count); }};
    static const Figure live = {"live bytes",
                                [](auto &s, auto &) { return bytes(s.leaked_bytes()); }};
    static const Figure live_objects = {"live objects",
                                        [](auto &s, auto &) { return count(s.leaked_count()); }};
    static const Figure at_peak = {"at peak",
                                   [](auto &s, auto &) { return bytes(s.at_peak_bytes); }};
    static const Figure own_peak = {"own peak",
                                    [](auto &s, auto &) { return bytes(s.peak_bytes); }};
    static const Figure peak_share = {
        "share", [](auto &s, auto &r) { return share_of(s.at_peak_bytes, r.whole.at_peak_bytes); }};
    static const std::map<std::string, std::vector<Figure>> kFigures = {
        {"accesses", {accesses, share, per_byte, objects, size}},
        {"cold", {held, used, lifetime, objects, size}},
        {"waste", {wasted, used, objects, size, accesses}},
        {"reserve", {unused_bytes, touched, mean_size, objects, reallocs}},
        {"churn", {freed, lifetime, temporaries, size}},
        {"realloc", {moved, reallocs, objects, size}},
        {"migrated", {migrated, migrated_share, objects}},
        {"live", {live, live_objects, lifetime}},
        {"peak", {at_peak, peak_share, own_peak, objects}},
    };
    auto known = kFigures.find(key);
    return known != kFigures.end() ? known->second
                                   : std::vector<Figure>{size, objects, lifetime, accesses, used};
  }

  void groups(const std::string &question, const char *what,
              const std::vector<analyze::HeapGroupRow> &rows, bool layouts) {
    bool any_name =
        std::any_of(rows.begin(), rows.end(), [](auto &row) { return !row.name.empty(); });
    if (!any_name)
      return;
    Table table;
    table.column("bytes", Align::right);
    table.column("objects", Align::right);
    if (result_.accesses_counted) {
      table.column("accesses", Align::right);
      table.column("used", Align::right);
    }
    table.column("at peak", Align::right);
    if (layouts)
      table.column("holes", Align::right);
    table.column(what, Align::left);
    for (size_t index = 0; index < rows.size() && (!options_.top || index < options_.top);
         index++) {
      const analyze::HeapGroupRow &row = rows[index];
      std::vector<std::string> cells = {bytes(row.sums.all.size_total),
                                        count(row.sums.all.alloc_count)};
      if (result_.accesses_counted) {
        cells.push_back(row.has_accesses() ? count(row.sums.accesses()) : "-");
        cells.push_back(row.accesses_counted ? format_share(row.sums.used_share()) : "-");
      }
      cells.push_back(result_.peak_is_divided ? bytes(row.sums.at_peak_bytes) : "-");
      if (layouts)
        cells.push_back(row.has_layout ? fmt::format("{} of {}", row.hole_bytes, row.size) : "");
      std::string name =
          row.name.empty() ? fmt::format("({} unknown)", what) : analyze::short_type(row.name);
      if (row.has_layout)
        name += fmt::format(", {}:{}", analyze::base_name(row.file), row.line);
      cells.push_back(name);
      table.row(std::move(cells));
    }
    heading(question);
    out_ += table.text(style_);
  }

  void stacks() {
    if (shown_.empty())
      return;
    constexpr size_t kMaxFrames = 12;
    heading("Call stacks (innermost first; > marks the owner)");
    for (size_t number = 0; number < shown_.size(); number++) {
      const HeapContextRow &row = result_.sites[shown_[number]];
      std::string note = "id " + row.id;
      if (row.contexts > 1)
        note += fmt::format(", the largest of {} contexts", row.contexts);
      out_ += fmt::format("  #{} {}\n", number + 1, style_.faint(note));
      // Machinery inside the owner is one line; so is what is far outside.
      size_t first = row.owner > 3 ? row.owner - 1 : 0;
      if (first)
        out_ += fmt::format("      … {} frames of libraries and allocators\n", first);
      for (size_t index = first; index < row.frames.size(); index++) {
        if (index - first == kMaxFrames) {
          out_ += fmt::format("      … {} more\n", row.frames.size() - index);
          break;
        }
        const analyze::Frame &frame = row.frames[index];
        std::string line =
            fmt::format("{} {}", index == row.owner ? ">" : " ", printable(analyze::place(frame)));
        out_ += "    " + shortened(line, style_.width - 4) + "\n";
      }
      if (row.stack_cut)
        out_ += "      … outer frames are missing\n";
      recursion(row.recursion);
      freed_at(row);
    }
  }

  // "in a recursion of build_tree, 1 to 21 levels deep, 19.0 on average: 1.05 M objects"
  void recursion(const analyze::RecursionRow &row) {
    if (row.objects == 0)
      return;
    std::string deep = row.min == row.max ? with_noun(row.max, "level deep", "levels deep")
                                          : fmt::format("{} to {} levels deep, {:.1f} on average",
                                                        row.min, row.max, row.mean());
    std::string line = fmt::format("in a recursion of {}, {}: {}", printable(row.function), deep,
                                   format_counted(double(row.objects), "object"));
    out_ += "      " + shortened(line, style_.width - 6) + "\n";
  }

  void freed_at(const HeapContextRow &row) {
    constexpr size_t kMaxPlaces = 3;
    for (size_t index = 0; index < row.freed_at.size(); index++) {
      if (index == kMaxPlaces) {
        out_ += fmt::format("      … freed at {}\n",
                            with_noun(row.freed_at.size() - index, "more place"));
        break;
      }
      const analyze::FreeSite &place = row.freed_at[index];
      std::string amount = fmt::format(": {}, {}", format_counted(double(place.count), "object"),
                                       bytes(place.bytes));
      std::string line = "freed at " + printable(analyze::place(place.owner_frame()));
      out_ += "      " + shortened(line, style_.width - 6 - columns_of(amount)) + amount + "\n";
    }
  }

  void what_is_missing() {
    bool partial = result_.modules_instrumented < result_.modules_total;
    const auto &nameless = result_.nameless_modules;
    if (result_.losses.empty() && result_.notes.empty() && !partial && nameless.empty() &&
        result_.measured && result_.peak_is_divided)
      return;
    heading("What is missing");
    const bool is_cut_off =
        result_.losses.contains(ASSAY_LOSS_killed) || result_.losses.contains(ASSAY_LOSS_truncated);
    if (!result_.measured)
      out_ += fmt::format("  {}\n", analyze::kHeapNotMeasured);
    else if (partial && result_.modules_instrumented == 0)
      out_ +=
          is_cut_off
              ? "  the profile ends before it says which modules were built with assay-cc, so no "
                "accesses are shown\n"
              : "  no module was built with assay-cc, so accesses are not counted\n";
    else
      out_ += uncounted_modules_text(result_.modules_instrumented, result_.modules_total);
    for (auto [number, times] : result_.losses) {
      if (times == 0)
        continue;
      std::string names;
      if (number == ASSAY_LOSS_uninstrumented_module && !result_.uninstrumented_allocators.empty())
        names = fmt::format(" ({})", fmt::join(result_.uninstrumented_allocators, ", "));
      out_ += loss_text(number, times, names);
    }
    if (!result_.peak_is_divided)
      out_ += "  who held the memory at the peak is written when a run ends, and this one did not: "
              "end it normally or with a signal that can be caught\n";
    if (!nameless.empty()) {
      std::string names;
      for (const std::string &path : nameless)
        names += (names.empty() ? "" : ", ") + analyze::base_name(path);
      out_ += printable(fmt::format("  {} no symbols ({}), so {} functions are shown as addresses; "
                                    "leave them in (no -s, no strip), or install the package with "
                                    "{} debug symbols",
                                    nameless.size() == 1
                                        ? "1 module has"
                                        : fmt::format("{} modules have", nameless.size()),
                                    names, nameless.size() == 1 ? "its" : "their",
                                    nameless.size() == 1 ? "its" : "their")) +
              "\n";
    }
    for (const std::string &note : result_.notes)
      out_ += "  " + printable(note) + "\n";
  }

  const HeapResult &result_;
  const HeapTextOptions &options_;
  const Style &style_;
  std::string out_;
  std::map<size_t, size_t> numbers_;
  std::vector<size_t> shown_;
};

} // namespace

std::string heap_run_text(const HeapResult &result) {
  return fmt::format("{} of {} in {}, {}",
                     format_counted(double(result.whole.all.alloc_count), "allocation"),
                     bytes(result.whole.all.size_total), format_duration_us(double(result.run_us)),
                     peak_text(result.peak_live_bytes, result.processes.size()));
}

std::string peak_text(uint64_t bytes, size_t processes) {
  return fmt::format("peak {} live{}", format_bytes(double(bytes)),
                     processes > 1 ? " in one process" : "");
}

std::string heap_text(const HeapResult &result, const HeapTextOptions &options,
                      const Style &style) {
  return HeapText(result, options, style).text();
}

} // namespace report
