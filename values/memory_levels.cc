// A walk through a random cycle of lines, each of which names the next: no prefetcher follows it.
// After a first round the level that is just large enough for the lines has them; then single loads
// are timed. For memory itself the lines are flushed instead: filling more than the last cache
// takes seconds.
//
// Between two levels the limit is the geometric mean of their medians, and they are told apart only
// if nine of ten loads of each are on their side of it: the counter of some machines goes by steps
// of 26 cycles, which is more than lies between L1 and L2.
//
// Sizes of caches are the system's; on a shared machine others take part of the last one, so a
// quarter of it is walked, 8 MiB at most. Lines are in pages of 4 KiB, as those of most programs:
// what the larger levels cost includes their misses of the translation buffer.

#include "values/memory_levels.h"

#include "abi/timed_load.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <emmintrin.h>
#include <numeric>
#include <optional>
#include <random>
#include <unistd.h>
#include <vector>

ASSAY_TIMED_LOAD("assay_values_timed_load", "assay_values_timed_begin", "assay_values_timed_end",
                 "assay_values_timed_failed");
extern "C" [[gnu::visibility("hidden")]] uint32_t assay_values_timed_load(const void *from);

namespace values {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kTimed = 3000; // loads of a round
constexpr int kRounds = 7;
constexpr size_t kMaxLastCache =
    size_t{8} << 20; // virtual machines are told of caches that many of them share
constexpr size_t kMemory = size_t{64} << 20; // flushed

struct alignas(kLine) Line {
  uint32_t next = 0;
};

// A cycle of lines through so many bytes, in an order by chance.
class Walk {
public:
  Walk(size_t bytes, std::mt19937 &random) : lines_(std::max<size_t>(bytes / kLine, 16)) {
    order_.resize(lines_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::shuffle(order_.begin(), order_.end(), random);
    for (size_t i = 0; i < order_.size(); i++)
      lines_[order_[i]].next = order_[(i + 1) % order_.size()];
    cycles_.reserve(kTimed);
  }

  // Cycles of single loads, sorted. What is not to be flushed is walked through before.
  const std::vector<uint32_t> &timed(bool is_flushed) {
    const size_t warm = is_flushed ? 0 : std::max<size_t>(lines_.size(), 10'000);
    uint32_t at = order_[here_];
    for (size_t i = 0; i < warm; i++)
      at = lines_[at].next;
    // Nothing else depends on where the walk is, so the compiler must believe that it matters.
    __asm__ volatile("" : : "r"(at));
    // It goes on with the lines that it has not been at for longest; which they are is known without reading them.
    here_ = (here_ + warm) % order_.size();
    for (size_t i = 0; i < kTimed && is_flushed; i++)
      _mm_clflush(&lines_[line(i)]);
    _mm_mfence();
    cycles_.clear();
    for (size_t i = 0; i < kTimed; i++)
      cycles_.push_back(assay_values_timed_load(&lines_[line(i)]));
    here_ = (here_ + kTimed) % order_.size();
    std::sort(cycles_.begin(), cycles_.end());
    return cycles_;
  }

private:
  uint32_t line(size_t i) const { return order_[(here_ + i) % order_.size()]; }

  std::vector<Line> lines_;
  std::vector<uint32_t> order_, cycles_;
  size_t here_ = 0; // in order_
};

// Of several rounds the one that was disturbed least: what else runs on the machine takes lines of
// caches and time, it never gives any.
std::vector<uint32_t> cycles_of(size_t bytes, bool is_flushed, std::mt19937 &random) {
  Walk walk(bytes, random);
  std::vector<uint32_t> best;
  for (int round = 0; round < kRounds; round++) {
    const std::vector<uint32_t> &cycles = walk.timed(is_flushed);
    if (best.empty() || cycles[kTimed * 9 / 10] < best[kTimed * 9 / 10])
      best = cycles;
  }
  return best;
}

double median(const std::vector<uint32_t> &sorted) {
  return sorted[sorted.size() / 2];
}

double share_up_to(const std::vector<uint32_t> &sorted, uint32_t limit) {
  return double(std::upper_bound(sorted.begin(), sorted.end(), limit) - sorted.begin()) /
         double(sorted.size());
}

// Up to which loads are of the nearer of two levels; nothing if they are not told apart.
std::optional<uint32_t> limit_between(const std::vector<uint32_t> &near,
                                      const std::vector<uint32_t> &far) {
  constexpr double kClear = .9;
  const auto limit = static_cast<uint32_t>(std::sqrt(median(near) * median(far)));
  if (share_up_to(near, limit) < kClear || share_up_to(far, limit) > 1 - kClear)
    return std::nullopt;
  return limit;
}

} // namespace

size_t cache_bytes(int name, size_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<size_t>(bytes) : otherwise;
}

MemoryLevels memory_levels() {
  const size_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, size_t{32} << 10);
  const size_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, size_t{512} << 10);
  const size_t l3 = cache_bytes(_SC_LEVEL3_CACHE_SIZE, size_t{8} << 20);
  const size_t sizes[ASSAY_UPCALL_LEVELS] = {
      l1 / 4, l2 / 2, std::max(std::min(l3 / 4, kMaxLastCache), 2 * l2), kMemory};
  // NOLINTNEXTLINE(bugprone-random-generator-seed): the same walk in each run
  std::mt19937 random(1);
  std::array<std::vector<uint32_t>, ASSAY_UPCALL_LEVELS> cycles;
  for (uint32_t i = 0; i < ASSAY_UPCALL_LEVELS; i++)
    cycles[i] = cycles_of(sizes[i], i == ASSAY_UPCALL_LEVELS - 1, random);
  MemoryLevels levels;
  size_t last = 0; // class
  levels.sets[0] = 1;
  for (uint32_t i = 1; i < ASSAY_UPCALL_LEVELS; i++) {
    if (const std::optional<uint32_t> limit = limit_between(cycles[i - 1], cycles[i])) {
      levels.limits[last++] = *limit;
      levels.sets[last] = 0;
    }
    levels.sets[last] |= 1u << i;
  }
  // No two neighbours: what lies between two others that are told apart may be on both sides.
  for (uint32_t gap = 2; gap < ASSAY_UPCALL_LEVELS && last == 0; gap++)
    for (uint32_t near = 0; near + gap < ASSAY_UPCALL_LEVELS && last == 0; near++)
      if (const std::optional<uint32_t> limit = limit_between(cycles[near], cycles[near + gap])) {
        const uint32_t all = levels.sets[0];
        levels.limits[last++] = *limit;
        levels.sets[0] = (1u << (near + gap)) - 1;
        levels.sets[1] = all & ~((1u << (near + 1)) - 1);
      }
  for (size_t i = last; i < levels.sets.size(); i++) {
    levels.limits[i] = UINT32_MAX;
    levels.sets[i] = levels.sets[last];
  }
  return levels;
}

} // namespace values
