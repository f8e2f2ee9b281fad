// `assay trace cache`: how often caches and TLBs of given shapes would miss, and by which instructions.
//
// The model, of data only. A touch is an access in one line; an access that crosses lines touches
// each of them. A touch looks into the first level; what misses goes on to the next one, and is in
// all of them afterwards, whether it was a read or a write (write-allocate). Each level replaces
// the line of a set that was used longest ago, and does not know what others hold: neither
// inclusive nor exclusive. Each thread has levels 1 and 2 and TLBs of its own; the last level is
// shared by all. As the order between threads is only that of their buffers, a write takes no line
// out of another thread's caches. There is no prefetcher, and nothing is written back.
//
// Sources: Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", 1970
// (LRU as a stack); Hill, Smith, "Evaluating associativity in CPU caches", 1989 (sets).
#pragma once

#include "analyze/address_spaces.h"
#include "analyze/cache_model.h"
#include "analyze/finding.h"
#include "profile/access_stream.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace analyze {

class AccessPlaces;

struct CacheSettings {
  CacheShape l1{32 << 10, 8, 64};
  std::optional<CacheShape> l2 = CacheShape{1 << 20, 16, 64};
  std::optional<CacheShape> llc = CacheShape{32 << 20, 16, 64};
  TlbShape tlb{64, 4};
  std::optional<TlbShape> l2_tlb = TlbShape{1536, 12};
  uint64_t page_bytes = 4096;
};

// Throws Failure unless all levels have lines of one size, and pages are larger.
void check(const CacheSettings &settings);

// Where a touch may miss.
enum class Level : uint8_t { l1, l2, llc, tlb, l2_tlb };
inline constexpr unsigned kLevels = 5;
const char *level_name(Level level); // "L1", "L2", "LLC", "TLB", "L2 TLB"
const char *level_key(Level level);  // "l1", … as in JSON and --sort

struct CacheSums {
  uint64_t touches = 0; // of lines
  uint64_t writes = 0;  // of these
  uint64_t misses[kLevels]{};
  uint64_t accesses() const { return touches; }
  uint64_t missed(Level level) const { return misses[static_cast<unsigned>(level)]; }
  CacheSums &operator+=(const CacheSums &other) {
    touches += other.touches;
    writes += other.writes;
    for (unsigned level = 0; level < kLevels; level++)
      misses[level] += other.misses[level];
    return *this;
  }
};

// By how much an instruction's address grows from one miss in the first level to the next, if most
// do by the same: the majority vote of Boyer and Moore, "MJRTY, a fast majority vote algorithm",
// 1981. What it does where a row of such steps ends shows whether a loop around it goes over neighbours: then it
// comes back to beside where the row began, as over the columns of a matrix. A walk through objects
// comes back to the same addresses, or never.
struct StrideVote {
  uint64_t last = 0, begin = 0; // of the row
  int64_t stride = 0;
  uint32_t votes = 0, returns_beside = 0;
  bool is_beside_begin(uint64_t address) const {
    constexpr int64_t kNear = 4; // steps: the first ones of a row may have hit
    const auto back = static_cast<int64_t>(address - last),
               from = static_cast<int64_t>(address - begin);
    return (back < 0) == (stride > 0) && from / kNear < std::abs(stride) &&
           from / kNear > -std::abs(stride) && from % stride != 0;
  }
  void miss(uint64_t address) {
    const auto by = static_cast<int64_t>(address - last);
    if (by == stride)
      votes++;
    else {
      if (votes == 0)
        stride = by;
      else {
        returns_beside += is_beside_begin(address);
        votes--;
      }
      begin = address;
    }
    last = address;
  }
};

class CacheSimulation final : public profile::AccessSink {
public:
  explicit CacheSimulation(const CacheSettings &settings);
  ~CacheSimulation() override;
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override;

  const CacheSettings &settings() const { return settings_; }
  // Levels that are simulated, in order.
  std::vector<Level> levels() const;
  const std::vector<CacheSums> &of_site() const { return of_site_; }
  const std::vector<StrideVote> &strides() const { return strides_; } // by site
  CacheSums all() const;
  size_t threads() const { return of_thread_.size(); }

private:
  struct Private;
  Private &caches_of(const profile::AccessOrigin &origin);
  void miss(Private &caches, CacheSums &sums, uint64_t line);
  void miss_page(Private &caches, CacheSums &sums, uint64_t page);

  CacheSettings settings_;
  unsigned line_shift_, page_shift_;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<Private>>
      of_thread_; // by process and thread
  std::optional<Cache> llc_;
  std::vector<CacheSums> of_site_;
  std::vector<StrideVote> strides_;
  AddressSpaces spaces_;
};

// Instructions that miss often, and what may be changed; silent where few touches miss.
std::vector<Finding> cache_findings(const CacheSimulation &simulation, AccessPlaces &places);

} // namespace analyze
