#include "report/chart.h"

#include <algorithm>
#include <cmath>

namespace report {
namespace {

constexpr unsigned kRows = 8;
const char *const kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string padded(const std::string &text, unsigned width) {
  unsigned has = columns_of(text);
  return std::string(width > has ? width - has : 0, ' ') + text;
}

} // namespace

std::string chart(const std::vector<ChartPoint> &points, const std::string &top_label,
                  const std::string &begin_label, const std::string &end_label,
                  const Style &style) {
  double most = 0;
  for (const ChartPoint &point : points)
    most = std::max(most, point.value);
  if (points.empty() || most == 0 || points.back().end <= points.front().begin)
    return "";
  unsigned margin = columns_of(top_label) + 2, width = std::max(20u, style.width - margin - 3);
  double begin = points.front().begin, length = points.back().end - begin;
  std::vector<double> columns(width, 0);
  for (const ChartPoint &point : points) {
    auto column = [&](double time) { return (time - begin) / length * width; };
    auto first = static_cast<size_t>(column(point.begin));
    auto last = static_cast<size_t>(std::ceil(column(point.end)));
    for (size_t i = std::min<size_t>(first, width - 1); i < std::min<size_t>(last, width); i++)
      columns[i] = std::max(columns[i], point.value);
  }
  std::string text;
  for (unsigned row = kRows; row-- > 0;) {
    std::string line = padded(row + 1 == kRows ? top_label : row == 0 ? "0" : "", margin) + " │";
    for (double value : columns) {
      double eighths = value / most * kRows * 8 - row * 8;
      bool seen = row == 0 && value > 0; // something is never nothing
      line += kEighths[static_cast<size_t>(std::clamp(std::round(eighths), seen ? 1.0 : 0.0, 8.0))];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  unsigned labels = columns_of(begin_label) + columns_of(end_label);
  text += std::string(margin + 2, ' ') + begin_label +
          std::string(width > labels ? width - labels : 1, ' ') + end_label + "\n";
  return text;
}

} // namespace report
