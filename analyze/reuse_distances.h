// `assay trace reuse`: how many other lines are touched between two touches of a line, exactly.
//
// Lines are of 64 bytes. All threads are taken as they share one cache, in the order of the trace.
// An access that crosses lines touches each of them.
#pragma once

#include "analyze/address_spaces.h"
#include "analyze/stack_distances.h"
#include "profile/access_stream.h"

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace analyze {

// Touches by the powers of two of their distances: 0; 1; 2 and 3; 4 to 7; … and those without a touch before.
struct ReuseSums {
  static constexpr unsigned kBuckets = 36;
  std::array<uint64_t, kBuckets> count{};
  uint64_t first = 0;

  static unsigned bucket_of(uint64_t distance) {
    const auto bits = static_cast<unsigned>(std::bit_width(distance));
    return bits < kBuckets ? bits : kBuckets - 1;
  }
  static uint64_t least_of(unsigned bucket) { return bucket ? uint64_t{1} << (bucket - 1) : 0; }
  uint64_t accesses() const { return all_; }
  // Touches with a distance of at least so much, a power of two; those without a touch before are among them.
  uint64_t beyond(uint64_t distance) const;
  // The smallest power of two that at least half of the touches stay below; UINT64_MAX if half of them are first ones.
  uint64_t median_below() const;
  void add(uint64_t distance) {
    all_++;
    if (distance == StackDistances::kFirst)
      first++;
    else
      count[bucket_of(distance)]++;
  }
  ReuseSums &operator+=(const ReuseSums &other);

private:
  uint64_t all_ = 0;
};

class ReuseDistances final : public profile::AccessSink {
public:
  // `by_site`: also by instruction; else only distances of all together.
  explicit ReuseDistances(bool by_site = true) : by_site_(by_site) {}
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override;

  std::vector<ReuseSums> of_site() const;
  const std::vector<uint64_t> &histogram() const { return histogram_; } // touches by distance
  uint64_t first_touches() const { return first_; } // also the lines that were ever touched
  uint64_t touches() const { return touches_; }

private:
  void count(uint32_t site, uint64_t distance);

  const bool by_site_;
  StackDistances distances_;
  std::vector<uint64_t> histogram_;
  uint64_t first_ = 0, touches_ = 0;
  std::vector<uint32_t> sums_of_site_; // in sums_, plus 1; most instructions make no access
  std::vector<ReuseSums> sums_;
  AddressSpaces spaces_;
};

} // namespace analyze
