// Formatting and parsing of quantities.
//
// The idea: one ladder of (factor, name) a kind of quantity, climbed by one function and searched
// by another, so that what is printed can be typed back. Locale-aware formatting was refused:
// output is compared in tests and read by scripts.

#include "base/units.h"

#include "base/fail.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace base {
namespace {

struct Unit {
  double factor;
  const char *name;
};

constexpr Unit kByteUnits[] = {{1, "B"},
                               {1024., "KiB"},
                               {1024. * 1024, "MiB"},
                               {1024. * 1024 * 1024, "GiB"},
                               {1024. * 1024 * 1024 * 1024, "TiB"}};
constexpr Unit kTimeUnits[] = {{1, "us"}, {1e3, "ms"}, {1e6, "s"}, {60e6, "min"}, {3600e6, "h"}};
constexpr Unit kCountUnits[] = {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}};

std::string format_quantity(double value, std::span<const Unit> units) {
  const Unit *unit = &units[0];
  for (const Unit &next : units)
    if (std::abs(value) >= next.factor)
      unit = &next;
  double scaled = value / unit->factor;
  // 999.6 would print as 1000: the next unit reads better.
  if (unit != &units.back() && scaled >= 999.5 && unit[1].factor / unit->factor <= 1024) {
    ++unit;
    scaled = value / unit->factor;
  }
  int decimals = unit == &units[0] && scaled == std::floor(scaled) ? 0
                 : scaled < 9.995                                  ? 2
                 : scaled < 99.95                                  ? 1
                                                                   : 0;
  return fmt::format("{:.{}f}{}{}", scaled, decimals, *unit->name ? " " : "", unit->name);
}

enum Kind : unsigned { kPlain = 1, kShare = 2, kCount = 4, kBytes = 8, kTime = 16 };

struct Spelling {
  std::string_view name;
  double factor;
  Kind kind;
};

// One unit has one meaning, whatever is asked for: k is a thousand, KiB 1,024 bytes.
constexpr Spelling kSpellings[] = {
    {"", 1, kPlain},         {"%", 0.01, kShare},     {"k", 1e3, kCount},
    {"K", 1e3, kCount},      {"M", 1e6, kCount},      {"G", 1e9, kCount},
    {"T", 1e12, kCount},     {"B", 1, kBytes},        {"kB", 1e3, kBytes},
    {"MB", 1e6, kBytes},     {"GB", 1e9, kBytes},     {"TB", 1e12, kBytes},
    {"KiB", 1024, kBytes},   {"MiB", 0x1p20, kBytes}, {"GiB", 0x1p30, kBytes},
    {"TiB", 0x1p40, kBytes}, {"us", 1, kTime},        {"ms", 1e3, kTime},
    {"s", 1e6, kTime},       {"min", 60e6, kTime},    {"h", 3600e6, kTime},
};

UnitKind unit_of(Kind kind) {
  return kind == kShare   ? UnitKind::kShare
         : kind == kCount ? UnitKind::kCount
         : kind == kBytes ? UnitKind::kBytes
         : kind == kTime  ? UnitKind::kTime
                          : UnitKind::kNone;
}

// The number, if its unit is of one of these kinds; else nothing.
std::optional<Number> parse(std::string_view text, unsigned kinds) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(end - text.data());
  while (!unit.empty() && unit.front() == ' ')
    unit.remove_prefix(1);
  if (error != std::errc() || !std::isfinite(number))
    return std::nullopt;
  for (const Spelling &spelling : kSpellings)
    if (unit == spelling.name && spelling.kind & kinds)
      return Number{number * spelling.factor, unit_of(spelling.kind)};
  return std::nullopt;
}

[[noreturn]] void refuse(std::string_view text, std::string_view option, const char *what,
                         const char *example) {
  if (option.empty())
    fail("'{}' is not {} that is understood here; write it like {}", text, what, example);
  fail("{} '{}': this is not {} that is understood here; write it like {}", option, text, what,
       example);
}

uint64_t parse_quantity(std::string_view text, std::string_view option, unsigned kinds,
                        const char *what, const char *example) {
  std::optional<Number> number = parse(text, kinds);
  if (!number || number->value < 0 || number->value >= 0x1p64)
    refuse(text, option, what, example);
  return static_cast<uint64_t>(std::round(number->value));
}

} // namespace

std::string format_bytes(double bytes) {
  return format_quantity(bytes, kByteUnits);
}
std::string format_duration_us(double us) {
  return format_quantity(us, kTimeUnits);
}
std::string format_count(double count) {
  return format_quantity(count, kCountUnits);
}

std::string format_share(double share) {
  constexpr double kNothing = 1e-9; // a sum of parts may miss a whole by that much
  const double percent = share * 100;
  const bool is_part = percent > kNothing && percent < 100 - kNothing;
  if (is_part && percent < 0.05)
    return "< 0.1 %";
  if (is_part && percent >= 99.95)
    return "> 99.9 %";
  return fmt::format("{:.{}f} %", percent, is_part && (percent < 9.95 || percent >= 99.5) ? 1 : 0);
}

std::string format_counted(double count, std::string_view one, std::string_view many) {
  return with_noun(format_count(count), one, many);
}

std::string with_noun(std::string_view number, std::string_view one, std::string_view many) {
  if (number == "1" || !many.empty())
    return fmt::format("{} {}", number, number == "1" ? one : many);
  return fmt::format("{} {}s", number, one);
}

std::string with_noun(uint64_t number, std::string_view one, std::string_view many) {
  return with_noun(std::to_string(number), one, many);
}

uint64_t parse_bytes(std::string_view text, std::string_view option) {
  return parse_quantity(text, option, kPlain | kBytes, "a number of bytes", "64, 4KiB or 1.5MiB");
}

uint64_t parse_duration_us(std::string_view text, std::string_view option) {
  return parse_quantity(text, option, kTime, "a time", "500us, 10ms or 2s");
}

uint64_t parse_count(std::string_view text, std::string_view option) {
  return parse_quantity(text, option, kPlain | kCount, "a number", "1000, 10k or 2M");
}

double parse_share(std::string_view text, std::string_view option) {
  std::optional<Number> share = parse(text, kShare);
  if (!share || share->value < 0 || share->value > 1)
    refuse(text, option, "a share", "1% or 0.5%");
  return share->value;
}

double parse_growth(std::string_view text, std::string_view option) {
  std::optional<Number> growth = parse(text, kShare);
  if (!growth || growth->value < 0)
    refuse(text, option, "a growth", "5% or 200%");
  return growth->value;
}

Number parse_number(std::string_view text) {
  std::optional<Number> number = parse(text, ~0U);
  if (!number)
    fail("'{}' is not a number that is understood here; its unit may be %, k, M, G, T, B, kB, MB, "
         "GB, TB, KiB, MiB, GiB, TiB, us, ms, s, min or h",
         text);
  return *number;
}

} // namespace base
