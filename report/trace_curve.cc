// `assay trace mrc`: schema assay.trace-mrc/1.
//
// The curve has more points than people read: text draws all of them, by powers of two, and its
// table has only the sizes that are powers of two, and the last. JSON has each point. If lines were
// sampled, both say so, and how many: the number of lines is then an estimate. The steepest part is
// said in words; in JSON it is null where there is none.

#include "report/trace_parts.h"

#include "base/units.h"
#include "report/chart.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace report {
namespace {

using analyze::MissRatioCurve;
using analyze::MissRatioPoint;
using Align = Table::Align;

std::string size_text(uint64_t lines) {
  return base::format_bytes(double(lines) * 64);
}

std::string ratio_text(double ratio) {
  return fmt::format("{:.2f} %", 100 * ratio);
}

// Sizes by their powers of two from left to right; a ratio holds up to the next size.
std::string drawn(const MissRatioCurve &curve, const Style &style) {
  std::vector<ChartPoint> points;
  for (size_t i = 0; i + 1 < curve.points.size(); i++)
    points.push_back({std::log2(double(curve.points[i].lines)),
                      std::log2(double(curve.points[i + 1].lines)), curve.points[i].miss_ratio});
  if (points.empty())
    return "";
  double most = 0;
  for (const ChartPoint &point : points)
    most = std::max(most, point.value);
  return chart(points, ratio_text(most), size_text(curve.points.front().lines),
               size_text(curve.points.back().lines), style);
}

Json point_json(const MissRatioPoint &point) {
  return {{"bytes", point.lines * 64}, {"lines", point.lines}, {"miss_share", point.miss_ratio}};
}

} // namespace

std::string curve_text(const analyze::TracedProgram &program, const MissRatioCurve &curve,
                       const Style &style) {
  std::string text = trace_head_text(program, "trace mrc", style);
  if (curve.touches == 0)
    return text + no_accesses_text(program);
  text += fmt::format(
      "  {} of {}{} of 64 bytes ({}); {}\n",
      base::format_counted(double(curve.touches), "touch", "touches"),
      curve.sampled_share < 1 ? "about " : "", base::format_counted(curve.lines, "line"),
      base::format_bytes(curve.lines * 64),
      curve.sampled_share < 1
          ? fmt::format("{} of the lines were sampled, {} at the end",
                        base::format_share(curve.sampled_share), count_text(curve.sampled_lines))
          : "all of them were followed");
  if (const size_t at = curve.steepest(); at < curve.points.size()) {
    const MissRatioPoint &from = curve.points[at], &to = curve.points[at + 2];
    text += fmt::format("  most is gained from {} to {}: {} of the touches miss, then {}\n",
                        size_text(from.lines), size_text(to.lines), ratio_text(from.miss_ratio),
                        ratio_text(to.miss_ratio));
  }
  const std::string picture = drawn(curve, style);
  if (!picture.empty())
    text += "\n" + picture;
  Table table;
  for (const char *heading : {"cache", "miss", "misses"})
    table.column(heading, Align::right);
  for (size_t i = 0; i < curve.points.size(); i++) {
    const MissRatioPoint &point = curve.points[i];
    if (std::has_single_bit(point.lines) || i + 1 == curve.points.size())
      table.row({size_text(point.lines), ratio_text(point.miss_ratio),
                 base::format_count(point.miss_ratio * double(curve.touches))});
  }
  text +=
      "\n" + style.strong("How much would a cache of this size miss?") + "\n" + table.text(style);
  return text + trace_coverage_text(program, style);
}

Json curve_json(const analyze::TracedProgram &program, const MissRatioCurve &curve) {
  Json json = trace_head_json(program, "assay.trace-mrc/1", "touches of lines");
  json["line_bytes"] = 64;
  json["touches"] = curve.touches;
  json["lines"] = static_cast<uint64_t>(std::llround(curve.lines));
  json["is_exact"] = curve.sampled_share >= 1;
  json["sampled_line_share"] = curve.sampled_share;
  json["sampled_lines"] = curve.sampled_lines;
  Json points = Json::array();
  for (const MissRatioPoint &point : curve.points)
    points.push_back(point_json(point));
  json["curve"] = std::move(points);
  const size_t at = curve.steepest();
  json["steepest"] = at < curve.points.size() ? Json{{"from", point_json(curve.points[at])},
                                                     {"to", point_json(curve.points[at + 2])}}
                                              : Json();
  return json;
}

} // namespace report
