// Shapes as users write them. What is wrong is found here, so that a cache never asks: the ways
// fill the size, a line has a power of two of bytes. The number of sets may be any: Cache::set_of()
// divides if it is no power of two. A shape's text can be typed back, so its bytes are exact:
// 32KiB, not 32.0 KiB. What a cache does is in the header, to be inlined: it is done for each
// touch.

#include "analyze/cache_model.h"

#include "base/fail.h"
#include "base/list.h"
#include "base/units.h"

#include <fmt/format.h>

#include <bit>

namespace analyze {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 32, kMaxWays = 1 << 12;

// What can be typed back: 32KiB, not 32.0 KiB.
std::string exact_bytes(uint64_t bytes) {
  const char *const kUnits[] = {"", "KiB", "MiB", "GiB"};
  unsigned unit = 0;
  for (; unit < 3 && bytes % 1024 == 0 && bytes; unit++)
    bytes /= 1024;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

} // namespace

std::string CacheShape::text() const {
  return fmt::format("{},{},{}", exact_bytes(bytes), ways, line_bytes);
}

std::string TlbShape::text() const {
  return fmt::format("{},{}", entries, ways);
}

CacheShape parse_cache_shape(std::string_view text, std::string_view option) {
  const auto parts = base::split_list(text);
  if (parts.size() < 2 || parts.size() > 3)
    base::fail("{} '{}': say SIZE,WAYS or SIZE,WAYS,LINE, such as 32KiB,8,64", option, text);
  const uint64_t bytes = base::parse_bytes(parts[0], option),
                 ways = base::parse_count(parts[1], option);
  const uint64_t line = parts.size() == 3 ? base::parse_bytes(parts[2], option) : 64;
  if (line < 8 || line > 4096 || !std::has_single_bit(line))
    base::fail("{} '{}': a line has 8 to 4,096 bytes, a power of two", option, text);
  if (bytes > kMaxBytes)
    base::fail("{} '{}': at most 4GiB are simulated; of larger ones `assay trace mrc` tells what "
               "they miss",
               option, text);
  if (ways == 0 || ways > kMaxWays || bytes == 0 || bytes % (ways * line))
    base::fail("{} '{}': {} of lines of {} bytes {} not fill a cache of that size", option, text,
               base::with_noun(parts[1], "way"), line, parts[1] == "1" ? "does" : "do");
  return {bytes, static_cast<uint32_t>(ways), static_cast<uint32_t>(line)};
}

TlbShape parse_tlb_shape(std::string_view text, std::string_view option) {
  const auto parts = base::split_list(text);
  if (parts.size() != 2)
    base::fail("{} '{}': say ENTRIES,WAYS, such as 64,4", option, text);
  const uint64_t entries = base::parse_count(parts[0], option),
                 ways = base::parse_count(parts[1], option);
  if (entries == 0 || entries > 1 << 24 || ways == 0 || ways > kMaxWays || entries % ways)
    base::fail("{} '{}': {} ways do not divide {}", option, text, parts[1],
               base::with_noun(parts[0], "entry", "entries"));
  return {entries, static_cast<uint32_t>(ways)};
}

} // namespace analyze
