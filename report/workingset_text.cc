// `assay workingset` for people: how large, as a curve; what to change; when (phases); what is in it
// (owners); over which periods, and in which caches.

#include "report/workingset.h"

#include "analyze/place.h"
#include "base/stable_sort.h"
#include "base/units.h"
#include "report/chart.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace report {
namespace {

using analyze::OwnerCount;
using analyze::Phase;
using analyze::SnapshotRow;
using analyze::WorkingSetResult;

using Align = Table::Align;

class WorkingSetText {
public:
  WorkingSetText(const WorkingSetResult &result, const WorkingSetTextOptions &options,
                 const Style &style)
      : result_(result), options_(options), style_(style) {}

  std::string text() {
    header();
    if (options_.sort.empty()) {
      out_ += findings_text(result_.findings, options_.top, style_);
      phases();
      threads();
    }
    owners();
    if (options_.sort.empty()) {
      periods();
      caches();
      misses();
    }
    missing();
    return std::move(out_);
  }

private:
  std::string bytes(double lines) const {
    return base::format_bytes(lines * double(result_.line_bytes));
  }
  std::string bytes(uint64_t lines) const { return bytes(double(lines)); }
  std::string time(uint64_t value) const { return analyze::clock_text(result_.unit, value); }
  std::string duration(double length) const {
    return result_.unit == ASSAY_TIME_MARKS ? base::format_counted(length, "mark")
                                            : time(static_cast<uint64_t>(length));
  }

  void heading(const std::string &text) { out_ += "\n" + style_.strong(text) + "\n"; }

  void header() {
    out_ += style_.strong("assay workingset: " + command_text(result_.process)) + "\n";
    const auto &rows = result_.snapshots;
    const SnapshotRow &largest = rows[result_.largest];
    out_ += fmt::format("  {} in {}; the working set is {} on average, {} at its largest "
                        "(at {})\n  {} of lines of {} bytes were ever touched\n\n",
                        base::with_noun(rows.size(), "snapshot"),
                        duration(double(rows.back().when.end)), bytes(result_.mean_lines),
                        bytes(largest.lines), time(largest.when.begin), bytes(result_.total_lines),
                        result_.line_bytes);
    std::vector<ChartPoint> points;
    points.reserve(rows.size());
    for (const SnapshotRow &row : rows)
      points.push_back({double(row.when.begin), double(row.when.end), double(row.lines)});
    out_ += chart(points, bytes(largest.lines), time(rows.front().when.begin),
                  time(rows.back().when.end), style_);
  }

  std::string owner_with_share(const OwnerCount &each, uint64_t lines) const {
    analyze::OwnerName owner = result_.owners[each.owner];
    owner.name = analyze::short_place(owner.name);
    return fmt::format(
        "{} {}", base::format_share(double(each.lines) / double(std::max<uint64_t>(lines, 1))),
        printable(full_name(owner)));
  }

  // The two with the most lines; the first alone where the second does not fit, too: a table cuts a cell in its
  // middle, and would make one wrong owner of both.
  std::string owner_list(const std::vector<OwnerCount> &owners, uint64_t lines,
                         unsigned width) const {
    if (owners.empty())
      return "";
    const std::string first = owner_with_share(owners[0], lines);
    if (owners.size() == 1)
      return first;
    const std::string both = first + ", " + owner_with_share(owners[1], lines);
    return columns_of(both) <= width ? both : first;
  }

  void phases() {
    if (result_.phases.size() < 2)
      return;
    heading("Which phases does the run have?");
    Table table;
    table.column("from", Align::right);
    table.column("lasts", Align::right);
    table.column("set", Align::right);
    table.column("all of it", Align::right);
    table.column("kept", Align::right);
    table.column("in", Align::left);
    table.column("filled by", Align::left);
    size_t shown = std::min<size_t>(std::max(options_.top, 12u), result_.phases.size());
    for (size_t i = 0; i < shown; i++) {
      const Phase &phase = result_.phases[i];
      uint64_t begin = result_.snapshots[phase.first].when.begin;
      table.row({time(begin), duration(double(result_.length(phase))), bytes(phase.mean_lines),
                 bytes(phase.lines),
                 base::format_share(double(phase.shared_with_previous) /
                                    double(std::max<uint64_t>(phase.lines, 1))),
                 phase.functions.empty()
                     ? ""
                     : brief_function(phase.functions.front().first, kPhaseFunctionColumns)},
                [this, &phase](unsigned width) {
                  return owner_list(phase.owners, phase.mean_lines, width);
                });
    }
    out_ += table.text(style_);
    out_ += more_text(result_.phases.size() - shown, style_);
  }

  void threads() {
    if (result_.threads.size() < 2)
      return;
    heading("Which threads bring in lines?");
    Table table;
    for (const char *name : {"thread", "from", "to", "of that time"})
      table.column(name, Align::right);
    table.column("mostly in", Align::left);
    size_t shown = std::min<size_t>(options_.top, result_.threads.size());
    for (size_t i = 0; i < shown; i++) {
      const analyze::ThreadRow &row = result_.threads[i];
      table.row({std::to_string(row.thread), time(result_.snapshots[row.first].when.begin),
                 time(result_.snapshots[row.last].when.end), base::format_share(row.work_share),
                 brief_function(row.function, style_.width)});
    }
    out_ += table.text(style_);
    out_ += more_text(result_.threads.size() - shown, style_);
    out_ += style_.faint(
        "  Threads that touched only lines which others had touched before, in each snapshot, are "
        "not listed.\n");
  }

  void owners() {
    heading(analyze::owner_order(options_.sort).question);
    if (result_.nothing_matches()) {
      out_ += fmt::format("  --filter '{}' matches none of its {}\n", printable(result_.filter),
                          base::with_noun(result_.filtered_owners, "owner"));
      return;
    }
    Table table;
    for (const char *name : {"on average", "share", "most", "new", "of the time"})
      table.column(name, Align::right);
    table.column("of", Align::left);
    size_t shown = std::min<size_t>(options_.top, result_.owner_rows.size());
    for (size_t i = 0; i < shown; i++) {
      const analyze::OwnerRow &row = result_.owner_rows[i];
      double all = result_.mean_lines > 0 ? result_.mean_lines : 1;
      table.row({bytes(row.mean_lines), base::format_share(row.mean_lines / all),
                 bytes(row.most_lines), bytes(row.new_lines), base::format_share(row.time_share),
                 full_name(result_.owners[row.owner])});
    }
    out_ += table.text(style_);
    out_ += more_text(result_.owner_rows.size() - shown, style_);
    if (result_.filtered_owners)
      out_ += style_.faint(fmt::format("  --filter left out {}, with {} on average",
                                       base::with_noun(result_.filtered_owners, "owner"),
                                       bytes(result_.filtered_mean_lines))) +
              "\n";
  }

  void periods() {
    if (result_.snapshots.size() < 2)
      return;
    heading("How large is it over longer periods?");
    Table table;
    for (const char *name : {"snapshots", "last", "on average", "most"})
      table.column(name, Align::right);
    table.column("", Align::left);
    for (const analyze::PeriodRow &row : result_.periods) {
      bool all = row.snapshots == result_.snapshots.size();
      table.row({std::to_string(row.snapshots), duration(row.length), bytes(row.mean_lines),
                 bytes(row.most_lines), all ? "the whole run" : ""});
    }
    out_ += table.text(style_);
  }

  void caches() {
    if (result_.caches.empty())
      return;
    heading("Does it fit?");
    Table table;
    table.column("cache", Align::left);
    table.column("size", Align::right);
    table.column("fits", Align::right);
    table.column("", Align::left);
    uint64_t begin = result_.snapshots.front().when.begin;
    for (const analyze::CacheFit &cache : result_.caches) {
      std::string from;
      if (cache.fits_from)
        from = *cache.fits_from == begin ? "always" : "from " + time(*cache.fits_from) + " on";
      else if (cache.fits_share == 0)
        from = "never";
      table.row({cache.name, base::format_bytes(double(cache.bytes)),
                 base::format_share(cache.fits_share), from});
    }
    out_ += table.text(style_);
  }

  void misses() {
    if (result_.caches.empty() || result_.length() == 0)
      return;
    heading("How much would a cache of this size miss?");
    bool accesses = result_.unit == ASSAY_TIME_ACCESSES, marks = result_.unit == ASSAY_TIME_MARKS;
    Table table;
    table.column("cache", Align::left);
    table.column("size", Align::right);
    table.column("misses", Align::right);
    table.column(accesses ? "of accesses" : marks ? "per snapshot" : "per second", Align::right);
    table.column("", Align::left);
    for (const analyze::MissPoint &point : result_.miss_curve) {
      if (point.name.empty())
        continue;
      double number = double(point.misses.most);
      std::string most = base::format_count(number);
      std::string least = base::format_count(double(point.misses.least));
      std::string rate = accesses ? base::format_share(number / double(result_.length()))
                         : marks  ? base::format_count(number / double(result_.snapshots.size()))
                                  : base::format_count(number / double(result_.length()) * 1e6);
      table.row({point.name, base::format_bytes(double(point.bytes)), most, rate,
                 point.may_be_more ? "or more: there are snapshots that do not fit"
                 : least != most   ? "or less, but not under " + least
                                   : ""});
    }
    out_ += table.text(style_);
  }

  void missing() {
    if (result_.losses.empty() && result_.notes.empty())
      return;
    heading("What is missing");
    for (auto [number, times] : result_.losses)
      out_ += loss_text(number, times);
    for (const std::string &note : result_.notes)
      out_ += "  " + printable(note) + "\n";
  }

  const WorkingSetResult &result_;
  const WorkingSetTextOptions &options_;
  const Style &style_;
  std::string out_;
};

constexpr size_t kFewProcesses = 3;

double bytes_of(const WorkingSetResult &result, double lines) {
  return lines * double(result.line_bytes);
}

double largest_bytes(const WorkingSetResult &result) {
  return bytes_of(result, double(result.snapshots[result.largest].lines));
}

// Largest first. Means are not added: the processes need not have run at the same time.
std::string processes_text(const std::vector<const WorkingSetResult *> &results, size_t top,
                           const Style &style) {
  double total = 0, mean = 0;
  for (const WorkingSetResult *result : results) {
    total += bytes_of(*result, double(result->total_lines));
    mean += bytes_of(*result, result->mean_lines) / double(results.size());
  }
  std::string text = style.strong(fmt::format("assay workingset: {} processes", results.size())) +
                     fmt::format("\n  {} were ever touched in all, the sum of their lines; the "
                                 "working set of a process is {} on average\n\n",
                                 base::format_bytes(total), base::format_bytes(mean)) +
                     style.strong("Which processes have the largest working sets?") + "\n";
  Table table;
  for (const char *name : {"most", "on average", "ever touched", "snapshots", "process"})
    table.column(name, Align::right);
  table.column("", Align::left);
  size_t shown = std::min(top, results.size());
  for (size_t i = 0; i < shown; i++)
    table.row({base::format_bytes(largest_bytes(*results[i])),
               base::format_bytes(bytes_of(*results[i], results[i]->mean_lines)),
               base::format_bytes(bytes_of(*results[i], double(results[i]->total_lines))),
               std::to_string(results[i]->snapshots.size()),
               std::to_string(results[i]->process.pid), command_text(results[i]->process)});
  text += table.text(style);
  if (shown < results.size())
    text +=
        style.faint("  " + more(results.size() - shown, fmt::format("--top {}", results.size())) +
                    ", --json all of each") +
        "\n";
  return text;
}

} // namespace

std::string workingsets_text(const std::vector<WorkingSetResult> &results,
                             const WorkingSetTextOptions &options, const Style &style) {
  std::vector<const WorkingSetResult *> order;
  for (const WorkingSetResult &result : results)
    order.push_back(&result);
  std::string text;
  if (results.size() > kFewProcesses) {
    base::stable_sort(order,
                      [](auto *a, auto *b) { return largest_bytes(*a) > largest_bytes(*b); });
    text = processes_text(order, options.top, style);
    order.resize(kFewProcesses);
  }
  for (const WorkingSetResult *result : order)
    text += (text.empty() ? "" : "\n") + workingset_text(*result, options, style);
  return text;
}

std::string workingset_text(const WorkingSetResult &result, const WorkingSetTextOptions &options,
                            const Style &style) {
  return WorkingSetText(result, options, style).text();
}

} // namespace report
