// What the number at a path of a JSON report is measured in, as the name of its key says: `peak_bytes`,
// `run_us`, `used_share`. So a condition that compares bytes with milliseconds, or a share with 51,
// is refused instead of never failing.
#pragma once

#include "base/units.h"

#include <string>

namespace report {

// Throws Failure with a sentence that says what to write, if comparing the number at this path with
// that one makes no sense, or can come out in one way only. `written` is the number as it was typed.
void check_comparison(const std::string &path, const std::string &op, const base::Number &number,
                      const std::string &written);

} // namespace report
