// StackDistances yields the distances; here they are counted. Of all touches together each distance
// has a count of its own, from which the exact miss-ratio curve is computed. An instruction has
// counts by powers of two, 300 bytes; most instructions make no access, so they get these with
// their first touch, and until then cost 4 bytes.
//
// Loops are not taken as a whole: a distance depends on all touches before it. So
// AccessSink::loop() hands over each iteration.

#include "analyze/reuse_distances.h"

#include "analyze/lines.h"

#include <algorithm>

namespace analyze {
namespace {
constexpr size_t kAhead = 16; // accesses, for which a line of a large table is on its way
} // namespace

uint64_t ReuseSums::beyond(uint64_t distance) const {
  uint64_t sum = first;
  for (unsigned bucket = bucket_of(distance); bucket < kBuckets; bucket++)
    sum += count[bucket];
  return sum;
}

uint64_t ReuseSums::median_below() const {
  uint64_t sum = 0;
  for (unsigned bucket = 0; bucket < kBuckets; bucket++) {
    sum += count[bucket];
    if (2 * sum >= all_)
      return least_of(bucket + 1);
  }
  return UINT64_MAX;
}

ReuseSums &ReuseSums::operator+=(const ReuseSums &other) {
  for (unsigned bucket = 0; bucket < kBuckets; bucket++)
    count[bucket] += other.count[bucket];
  first += other.first;
  all_ += other.all_;
  return *this;
}

void ReuseDistances::count(uint32_t site, uint64_t distance) {
  touches_++;
  if (distance == StackDistances::kFirst) {
    first_++;
  } else {
    if (distance >= histogram_.size())
      histogram_.resize(std::max<size_t>(distance + 1, histogram_.size() * 2));
    histogram_[distance]++;
  }
  if (!by_site_)
    return;
  if (site >= sums_of_site_.size())
    sums_of_site_.resize(site + size_t{1});
  uint32_t &sums = sums_of_site_[site];
  if (!sums) {
    sums_.emplace_back();
    sums = static_cast<uint32_t>(sums_.size());
  }
  sums_[sums - 1].add(distance);
}

void ReuseDistances::accesses(const profile::AccessOrigin &origin,
                              std::span<const profile::Access> batch) {
  const uint64_t space = spaces_.of(origin.process);
  for (size_t i = 0; i < batch.size(); i++) {
    if (i + kAhead < batch.size())
      distances_.expect((batch[i + kAhead].address + space) >> kLineShift);
    const profile::Access &each = batch[i];
    for_each_line(each.address + space, each.size, kLineShift,
                  [&](uint64_t line) { count(each.site, distances_.touch(line)); });
  }
}

std::vector<ReuseSums> ReuseDistances::of_site() const {
  std::vector<ReuseSums> all(sums_of_site_.size());
  for (size_t site = 0; site < all.size(); site++)
    if (sums_of_site_[site])
      all[site] = sums_[sums_of_site_[site] - 1];
  return all;
}

} // namespace analyze
