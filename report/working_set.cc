// How large first, as a curve; then when (phases), what is in it (owners), and whether it fits.

#include "report/working_set.h"

#include "base/units.h"
#include "report/chart.h"
#include "report/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace report {
namespace {

using analyze::OwnerLines;
using analyze::Phase;
using analyze::SnapshotRow;
using analyze::WorkingSetResult;

const char *unit_name(uint32_t unit) {
  switch (unit) {
  case ASSAY_TIME_CPU: return "cpu_us";
  case ASSAY_TIME_ACCESSES: return "accesses";
  case ASSAY_TIME_MARKS: return "mark";
  default: return "wall_us";
  }
}

std::string time(const WorkingSetResult &result, uint64_t value) {
  switch (result.unit) {
  case ASSAY_TIME_ACCESSES: return base::format_count(double(value)) + " accesses";
  case ASSAY_TIME_MARKS: return fmt::format("mark {}", value);
  default: return base::format_duration_us(double(value));
  }
}

std::string full_name(const analyze::LinesOwner &owner) {
  std::string name = owner.type.empty() ? owner.name : owner.type + " from " + owner.name;
  return printable(owner.kind == "global" ? "global " + name : name);
}

class WorkingSetText {
public:
  WorkingSetText(const WorkingSetResult &result, unsigned top, const Style &style)
      : result_(result), top_(top), style_(style) {}

  std::string text() {
    header();
    phases();
    owners();
    caches();
    missing();
    return std::move(out_);
  }

private:
  std::string bytes(uint64_t lines) const {
    return base::format_bytes(double(result_.bytes(lines)));
  }

  void heading(const std::string &text) { out_ += "\n" + style_.strong(text) + "\n"; }

  void header() {
    out_ += style_.strong("assay workingset: " + command_text(result_.process)) + "\n";
    const auto &rows = result_.snapshots;
    const SnapshotRow &largest = rows[result_.largest];
    uint64_t sum = 0, length = 0;
    for (const SnapshotRow &row : rows) {
      uint64_t weight = std::max<uint64_t>(row.when.end - row.when.begin, 1);
      sum += row.lines * weight;
      length += weight;
    }
    out_ += fmt::format("  {} snapshots in {}; the working set is {} on average, {} at its largest "
                        "(at {})\n  {} of lines of {} bytes were ever touched\n\n",
                        rows.size(), time(result_, rows.back().when.end), bytes(sum / length),
                        bytes(largest.lines), time(result_, largest.when.begin),
                        bytes(result_.total_lines), result_.line_bytes);
    std::vector<ChartPoint> points;
    points.reserve(rows.size());
    for (const SnapshotRow &row : rows)
      points.push_back({double(row.when.begin), double(row.when.end), double(row.lines)});
    out_ += chart(points, bytes(largest.lines), time(result_, rows.front().when.begin),
                  time(result_, rows.back().when.end), style_);
  }

  std::string owner_list(const std::vector<OwnerLines> &owners, uint64_t lines) const {
    std::string text;
    for (size_t i = 0; i < std::min<size_t>(owners.size(), 2); i++)
      text += fmt::format(
          "{}{} {}", i ? ", " : "",
          base::format_share(double(owners[i].lines) / double(std::max<uint64_t>(lines, 1))),
          full_name(result_.owners[owners[i].owner]));
    return text;
  }

  void phases() {
    if (result_.phases.size() < 2)
      return;
    heading("Which phases does the run have?");
    Table table;
    using Align = Table::Align;
    table.column("from", Align::right);
    table.column("lasts", Align::right);
    table.column("set", Align::right);
    table.column("all of it", Align::right);
    table.column("kept", Align::right);
    table.column("in", Align::left);
    table.column("filled by", Align::left);
    size_t shown = std::min<size_t>(std::max(top_, 12u), result_.phases.size());
    for (size_t i = 0; i < shown; i++) {
      const Phase &phase = result_.phases[i];
      uint64_t begin = result_.snapshots[phase.first].when.begin;
      uint64_t end = result_.snapshots[phase.last].when.end;
      std::string length = result_.unit == ASSAY_TIME_MARKS ? fmt::format("{} marks", end - begin)
                                                            : time(result_, end - begin);
      table.row({time(result_, begin), length, bytes(phase.mean_lines), bytes(phase.lines),
                 base::format_share(double(phase.shared_with_previous) /
                                    double(std::max<uint64_t>(phase.lines, 1))),
                 phase.functions.empty() ? "" : printable(phase.functions.front().first),
                 owner_list(phase.owners, phase.lines)});
    }
    out_ += table.text(style_);
    out_ += more_text(result_.phases.size() - shown, style_);
  }

  void owners() {
    heading("What is in the working set?");
    struct Sum {
      uint64_t lines = 0, most = 0;
    };
    std::vector<Sum> sums(result_.owners.size());
    uint64_t all = 0;
    for (const SnapshotRow &row : result_.snapshots) {
      all += row.lines;
      for (const OwnerLines &owner : row.owners) {
        sums[owner.owner].lines += owner.lines;
        sums[owner.owner].most = std::max(sums[owner.owner].most, owner.lines);
      }
    }
    std::vector<size_t> order(sums.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return sums[a].lines != sums[b].lines ? sums[a].lines > sums[b].lines : a < b;
    });
    Table table;
    table.column("on average", Table::Align::right);
    table.column("share", Table::Align::right);
    table.column("most", Table::Align::right);
    table.column("of", Table::Align::left);
    size_t shown = std::min<size_t>(top_, order.size());
    for (size_t i = 0; i < shown; i++) {
      const Sum &sum = sums[order[i]];
      if (sum.lines == 0) {
        shown = i;
        break;
      }
      table.row({bytes(sum.lines / result_.snapshots.size()),
                 base::format_share(double(sum.lines) / double(std::max<uint64_t>(all, 1))),
                 bytes(sum.most), full_name(result_.owners[order[i]])});
    }
    out_ += table.text(style_);
    out_ += more_text(order.size() - shown, style_);
  }

  void caches() {
    if (result_.caches.empty())
      return;
    heading("Does it fit?");
    Table table;
    table.column("cache", Table::Align::left);
    table.column("size", Table::Align::right);
    table.column("fits", Table::Align::right);
    table.column("", Table::Align::left);
    uint64_t begin = result_.snapshots.front().when.begin;
    for (const analyze::CacheFit &cache : result_.caches) {
      std::string from;
      if (cache.fits_from)
        from = *cache.fits_from == begin ? "always"
                                         : "from " + time(result_, *cache.fits_from) + " on";
      else if (cache.fits_share == 0)
        from = "never";
      table.row({cache.name, base::format_bytes(double(cache.bytes)),
                 base::format_share(cache.fits_share), from});
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
  unsigned top_;
  const Style &style_;
  std::string out_;
};

Json owners_json(const WorkingSetResult &result, const std::vector<OwnerLines> &owners,
                 unsigned top) {
  Json list = Json::array();
  for (const OwnerLines &each : owners) {
    if (top && list.size() == top)
      break;
    const analyze::LinesOwner &owner = result.owners[each.owner];
    list.push_back({{"kind", owner.kind},
                    {"name", owner.name},
                    {"type", owner.type.empty() ? Json(nullptr) : Json(owner.type)},
                    {"lines", each.lines}});
  }
  return list;
}

} // namespace

std::string working_set_text(const WorkingSetResult &result, unsigned top, const Style &style) {
  return WorkingSetText(result, top, style).text();
}

Json working_set_document(const WorkingSetResult &result, unsigned top) {
  Json json;
  json["schema"] = "assay.workingset/1";
  json["program"] = program_json(result.process, result.program_build_id);
  json["machine"] = machine_json(result.process);
  json["unit"] = "one cache line that was touched by a load or store of instrumented code";
  json["line_size"] = result.line_bytes;
  json["time_unit"] = unit_name(result.unit);
  json["losses"] = losses_json(result.losses);
  json["notes"] = result.notes;
  json["coverage"] = Json::object();
  json["findings"] = findings_json(result.findings);
  json["total_lines"] = result.total_lines;
  json["snapshots"] = Json::array();
  for (const SnapshotRow &row : result.snapshots) {
    Json stacks = Json::array();
    for (const analyze::ThreadStack &stack : row.stacks)
      stacks.push_back({{"thread", stack.thread}, {"stack", stack_json(stack.frames)}});
    json["snapshots"].push_back({{"begin", row.when.begin},
                                 {"end", row.when.end},
                                 {"begin_us", row.when.begin_us},
                                 {"end_us", row.when.end_us},
                                 {"mark", row.when.name},
                                 {"lines", row.lines},
                                 {"bytes", result.bytes(row.lines)},
                                 {"pages", row.pages},
                                 {"shared_with_previous", row.shared_with_previous},
                                 {"new_lines", row.new_lines},
                                 {"stacks", stacks},
                                 {"owners", owners_json(result, row.owners, top)}});
  }
  json["phases"] = Json::array();
  for (const Phase &phase : result.phases) {
    Json functions = Json::array();
    for (const auto &[name, snapshots] : phase.functions)
      functions.push_back({{"function", name}, {"snapshots", snapshots}});
    json["phases"].push_back({{"first_snapshot", phase.first},
                              {"last_snapshot", phase.last},
                              {"begin", result.snapshots[phase.first].when.begin},
                              {"end", result.snapshots[phase.last].when.end},
                              {"lines", phase.lines},
                              {"mean_lines", phase.mean_lines},
                              {"most_lines", phase.most_lines},
                              {"shared_with_previous", phase.shared_with_previous},
                              {"functions", functions},
                              {"owners", owners_json(result, phase.owners, top)}});
  }
  json["caches"] = Json::array();
  for (const analyze::CacheFit &cache : result.caches)
    json["caches"].push_back(
        {{"name", cache.name},
         {"bytes", cache.bytes},
         {"fits_share", cache.fits_share},
         {"fits_from", cache.fits_from ? Json(*cache.fits_from) : Json(nullptr)}});
  return json;
}

} // namespace report
