// See the header.
//
// A walk through a random cycle of lines, each of which names the next: no prefetcher follows it. After a first round the level that is
// just large enough for the lines has them; then single loads are timed. For memory itself the lines are flushed instead: filling more than
// the last cache takes seconds. Between two levels the limit is the geometric mean of their
// medians, and they are told apart only if nine of ten loads of each are on their side of it: the counter of some machines
// goes by steps of 26 cycles, which is more than lies between L1 and L2. Sizes of caches are the system's; on a shared machine others
// take part of the last one, so a quarter of it is walked. Lines are in pages of 4 KiB, as those of most programs: what the larger levels
// cost includes their misses of the translation buffer.

#include "values/memory_levels.h"

#include "abi/timed_load.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <emmintrin.h>
#include <numeric>
#include <random>
#include <unistd.h>
#include <vector>

ASSAY_TIMED_LOAD("assay_values_timed_load", "assay_values_timed_begin", "assay_values_timed_end",
                 "assay_values_timed_failed");
extern "C" [[gnu::visibility("hidden")]] uint32_t assay_values_timed_load(const void *from);

namespace values {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kTimed = 3000; // loads of a level

struct alignas(kLine) Line {
  uint32_t next = 0;
};

size_t cache_bytes(int name, size_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<size_t>(bytes) : otherwise;
}

// Cycles of loads from so many bytes, sorted.
std::vector<uint32_t> cycles_of(size_t bytes, bool is_flushed, std::mt19937 &random) {
  std::vector<Line> lines(std::max<size_t>(bytes / kLine, 16));
  std::vector<uint32_t> order(lines.size());
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  for (size_t i = 0; i < order.size(); i++)
    lines[order[i]].next = order[(i + 1) % order.size()];
  uint32_t at = 0;
  const size_t warm = std::max<size_t>(lines.size(), 10'000);
  for (size_t i = 0; i < warm && !is_flushed; i++)
    at = lines[at].next;
  std::vector<uint32_t> cycles, way;
  cycles.reserve(kTimed);
  way.reserve(kTimed);
  // The walk goes on with the lines that it has not been at for longest; which they are is known without reading them.
  const auto here = static_cast<size_t>(std::find(order.begin(), order.end(), at) - order.begin());
  for (size_t i = 0; i < kTimed; i++)
    way.push_back(order[(here + i) % order.size()]);
  for (size_t i = 0; i < kTimed && is_flushed; i++)
    _mm_clflush(&lines[way[i]]);
  _mm_mfence();
  for (const uint32_t each : way)
    cycles.push_back(assay_values_timed_load(&lines[each]));
  std::sort(cycles.begin(), cycles.end());
  return cycles;
}

double median(const std::vector<uint32_t> &sorted) {
  return sorted[sorted.size() / 2];
}

double share_up_to(const std::vector<uint32_t> &sorted, uint32_t limit) {
  return double(std::upper_bound(sorted.begin(), sorted.end(), limit) - sorted.begin()) /
         double(sorted.size());
}

} // namespace

MemoryLevels memory_levels() {
  constexpr double kClear = .9;
  const size_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, size_t{32} << 10);
  const size_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, size_t{512} << 10);
  const size_t l3 = cache_bytes(_SC_LEVEL3_CACHE_SIZE, size_t{8} << 20);
  const size_t sizes[ASSAY_UPCALL_LEVELS] = {l1 / 4, l2 / 2, std::max(l3 / 4, 2 * l2),
                                             std::max<size_t>(2 * l3, size_t{64} << 20)};
  // NOLINTNEXTLINE(bugprone-random-generator-seed): the same walk in each run
  std::mt19937 random(1);
  MemoryLevels levels;
  size_t last = 0; // class
  std::vector<uint32_t> before = cycles_of(sizes[0], false, random);
  levels.sets[0] = 1;
  for (uint32_t i = 1; i < ASSAY_UPCALL_LEVELS; i++) {
    std::vector<uint32_t> here = cycles_of(sizes[i], i == ASSAY_UPCALL_LEVELS - 1, random);
    const auto limit = static_cast<uint32_t>(std::sqrt(median(before) * median(here)));
    if (share_up_to(before, limit) >= kClear && share_up_to(here, limit) <= 1 - kClear) {
      levels.limits[last++] = limit;
      levels.sets[last] = 1u << i;
    } else {
      levels.sets[last] |= 1u << i;
    }
    before = std::move(here);
  }
  for (size_t i = last; i < levels.sets.size(); i++) {
    levels.limits[i] = UINT32_MAX;
    levels.sets[i] = levels.sets[last];
  }
  return levels;
}

} // namespace values
