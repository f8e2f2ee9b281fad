// Conditions on a report in JSON, for `assay check`: PATH OP NUMBER[unit].
//
//   totals.peak_bytes > 64MiB
//   contexts[Node].used_share < 0.5
//   contexts[owner~parse].alloc_count >= 10k
//   len(findings) > 0
//
// A path walks keys. [WORD] keeps the elements of an array whose name, type, id or owner function
// is WORD, [KEY=WORD] those whose KEY is WORD, [KEY~WORD] those whose KEY holds WORD somewhere: of frames,
// in the names of their functions.
// Numbers of several elements are added; shares, averages and extremes (keys ending in _share, min,
// max, peak_bytes), and elements that are no parts of a whole (Document::Part), are compared one by one, and
// the condition holds if it holds for any.
#pragma once

#include "report/document.h"

#include <optional>
#include <string>
#include <vector>

namespace report {

struct Condition {
  std::string text; // as it was given
  std::string path;
  std::string op; // == != < <= > >=
  double number = 0;
};

// Throws Failure with the reason when the text is no condition.
Condition parse_condition(const std::string &text);

// The numbers that the path leads to in the report, after adding. Throws Failure when there is no such
// path; a selector that keeps nothing gives no number.
std::vector<double> numbers_at(const Document &report, const std::string &path);

// The first number for which the condition holds, if any does.
std::optional<double> holds(const Condition &condition, const Document &report);

} // namespace report
