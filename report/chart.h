// A curve of columns for the terminal.
#pragma once

#include "report/table.h"

#include <string>
#include <vector>

namespace report {

struct ChartPoint {
  double begin = 0, end = 0, value = 0; // a value that holds from begin to end
};

// Columns of eighths as wide as the style allows, each as high as the largest value of its time; the
// labels stand at the top of the axis and below both ends of the time. Empty where there is nothing to
// show.
std::string chart(const std::vector<ChartPoint> &points, const std::string &top_label,
                  const std::string &begin_label, const std::string &end_label, const Style &style);

} // namespace report
