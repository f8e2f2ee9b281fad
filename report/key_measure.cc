// The documents of all tools name their keys by one rule: the last word is the unit, and what has none is a
// count. So one table says it for every key, those of later tools too. Refused: a list of all keys, which
// would have to be kept equal to the documents by hand. A number whose unit stands beside it, or is what
// the run was asked to measure in, may be compared with anything.

#include "report/key_measure.h"

#include "base/fail.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <vector>

namespace report {
namespace {

enum class Measure { kCount, kBytes, kTime, kShare, kRatio, kPercent, kAnything };

struct Named {
  std::string_view name;
  Measure measure;
};

// By the whole name of a key.
constexpr Named kKeys[] = {
    {"amount", Measure::kAnything},    {"begin", Measure::kAnything},
    {"end", Measure::kAnything},       {"length", Measure::kAnything},
    {"fits_from", Measure::kAnything}, {"interval", Measure::kAnything},
    {"low", Measure::kAnything},       {"high", Measure::kAnything},
    {"value", Measure::kAnything},     {"stride", Measure::kAnything},
    {"byte_us", Measure::kCount},      {"cold_byte_us", Measure::kCount},
    {"last_interval", Measure::kTime}, {"offset", Measure::kBytes},
    {"bit_size", Measure::kCount},     {"bit_offset", Measure::kCount},
    {"disparity", Measure::kShare},
};

// By the last word of a key's name.
constexpr Named kLastWords[] = {
    {"bytes", Measure::kBytes}, {"size", Measure::kBytes},      {"us", Measure::kTime},
    {"share", Measure::kShare}, {"percent", Measure::kPercent}, {"ratio", Measure::kRatio},
};

// The key that names the number: of a sum over objects, the one before `total`, `min` and `max`.
std::string naming_key(const std::string &path) {
  std::vector<std::string> keys;
  size_t depth = 0;
  keys.emplace_back();
  for (char c : path) {
    if (c == '[')
      depth++;
    if (c == '.' && depth == 0)
      keys.emplace_back();
    else if (depth == 0)
      keys.back() += c;
    if (c == ']' && depth)
      depth--;
  }
  const std::string &last = keys.back();
  const bool is_part = last == "total" || last == "min" || last == "max";
  return is_part && keys.size() > 1 ? keys[keys.size() - 2] : last;
}

Measure measure_of(const std::string &key) {
  for (const Named &named : kKeys)
    if (key == named.name)
      return named.measure;
  if (key.starts_with("size_")) // of a layout: before, after, split
    return Measure::kBytes;
  const std::string last_word = key.substr(key.rfind('_') + 1);
  for (const Named &named : kLastWords)
    if (last_word == named.name)
      return named.measure;
  return Measure::kCount;
}

// What the number may be written with; without a unit it may always be written.
bool may_be_written(Measure measure, base::UnitKind unit) {
  using base::UnitKind;
  switch (measure) {
  case Measure::kAnything: return true;
  case Measure::kBytes: return unit != UnitKind::kTime && unit != UnitKind::kShare;
  case Measure::kTime: return unit != UnitKind::kBytes && unit != UnitKind::kShare;
  case Measure::kShare:
  case Measure::kRatio: return unit == UnitKind::kNone || unit == UnitKind::kShare;
  case Measure::kPercent: return unit == UnitKind::kNone;
  case Measure::kCount: return unit == UnitKind::kNone || unit == UnitKind::kCount;
  }
  return true;
}

struct Range {
  double least, most;
  bool holds(double number) const { return number >= least && number <= most; }
};

Range range_of(Measure measure) {
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  switch (measure) {
  case Measure::kShare: return {0, 1};
  case Measure::kPercent: return {0, 100};
  case Measure::kBytes:
  case Measure::kCount:
  case Measure::kRatio: // of misses and accesses, of which one may make several
  case Measure::kTime: return {0, kEndless};
  default: return {-kEndless, kEndless};
  }
}

// Whether no number of the range compares in this way.
bool never_holds(const Range &range, const std::string &op, double number) {
  return op == ">"    ? number >= range.most
         : op == ">=" ? number > range.most
         : op == "<"  ? number <= range.least
         : op == "<=" ? number < range.least
         : op == "==" ? !range.holds(number)
                      : false;
}

std::string opposite(const std::string &op) {
  return op == ">"    ? "<="
         : op == ">=" ? "<"
         : op == "<"  ? ">="
         : op == "<=" ? ">"
         : op == "==" ? "!="
                      : "==";
}

// "51" of "51", "5 ms" and "-51%".
std::string digits_of(const std::string &written) {
  const size_t begin = written.starts_with('-') ? 1 : 0;
  return written.substr(begin, written.find_first_not_of(".0123456789", begin) - begin);
}

// What was probably meant.
std::string proposal(Measure measure, const std::string &written) {
  const std::string digits = digits_of(written);
  switch (measure) {
  case Measure::kBytes: return digits + "MiB";
  case Measure::kTime: return digits + "ms";
  case Measure::kShare: {
    const double percent = std::strtod(digits.c_str(), nullptr);
    return percent >= 0 && percent <= 100 ? fmt::format("{}% or {}", percent, percent / 100)
                                          : "50% or 0.5";
  }
  default: return digits;
  }
}

const char *in_words(Measure measure) {
  switch (measure) {
  case Measure::kBytes: return "is in bytes, 0 or more";
  case Measure::kTime: return "is a time, 0 or more";
  case Measure::kShare: return "is a share, between 0 and 1";
  case Measure::kRatio: return "is a ratio, 0 or more";
  case Measure::kPercent: return "is in percent, between 0 and 100";
  default: return "has no unit";
  }
}

} // namespace

void check_comparison(const std::string &path, const std::string &op, const base::Number &number,
                      const std::string &written) {
  const bool counts = path.starts_with("len(");
  const std::string key = counts ? path : naming_key(path);
  const bool adds_percents = key == "used_percent" && path.ends_with(".total");
  const Measure measure = counts || adds_percents ? Measure::kCount : measure_of(key);
  const Range range = range_of(measure);
  if (!may_be_written(measure, number.unit) || !range.holds(number.value))
    base::fail("`{}` {}; write {}, not {}", key, in_words(measure), proposal(measure, written),
               written);
  const bool never = never_holds(range, op, number.value);
  if (never || never_holds(range, opposite(op), number.value))
    base::fail("`{}` {}, so this {}; write another number than {}", key, in_words(measure),
               never ? "never holds" : "always holds", written);
}

} // namespace report
