// Formatting and parsing of quantities.
//
// The idea: one ladder of (factor, name) a kind of quantity, climbed by one function and searched
// by another, so that what is printed can be typed back. Locale-aware formatting was refused:
// output is compared in tests and read by scripts.

#include "base/units.h"

#include "base/fail.h"

#include <charconv>
#include <cmath>
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

struct Spelling {
  std::string_view name;
  double factor;
};

uint64_t parse_quantity(std::string_view text, std::span<const Spelling> spellings,
                        const char *example) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(end - text.data());
  while (!unit.empty() && unit.front() == ' ')
    unit.remove_prefix(1);
  if (error == std::errc() && std::isfinite(number) && number >= 0)
    for (const Spelling &spelling : spellings)
      if (unit == spelling.name && number * spelling.factor < 1.8e19)
        return static_cast<uint64_t>(std::llround(number * spelling.factor));
  fail("'{}' is not a quantity that is understood here; write it like {}", text, example);
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
  double percent = share * 100;
  return fmt::format("{:.{}f} %", percent, percent > 0 && percent < 9.95 ? 1 : 0);
}

uint64_t parse_bytes(std::string_view text) {
  constexpr double k = 1024, m = k * k, g = m * k;
  static constexpr Spelling spellings[] = {
      {"", 1},  {"B", 1},   {"k", k},  {"K", k}, {"KiB", k}, {"kB", k},  {"KB", k}, {"m", m},
      {"M", m}, {"MiB", m}, {"MB", m}, {"g", g}, {"G", g},   {"GiB", g}, {"GB", g}, {"TiB", g * k}};
  return parse_quantity(text, spellings, "64, 4KiB or 1.5MiB");
}

uint64_t parse_duration_us(std::string_view text) {
  static constexpr Spelling spellings[] = {
      {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}};
  return parse_quantity(text, spellings, "500us, 10ms or 2s");
}

double parse_share(std::string_view text) {
  double percent = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  std::string_view unit = text.substr(end - text.data());
  while (!unit.empty() && unit.front() == ' ')
    unit.remove_prefix(1);
  if (error != std::errc() || unit != "%" || !(percent >= 0 && percent <= 100))
    fail("'{}' is not a share that is understood here; write it like 1% or 0.5%", text);
  return percent / 100;
}

uint64_t parse_count(std::string_view text) {
  static constexpr Spelling spellings[] = {{"", 1},    {"k", 1e3}, {"K", 1e3},
                                           {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
  return parse_quantity(text, spellings, "1000, 10k or 2M");
}

} // namespace base
