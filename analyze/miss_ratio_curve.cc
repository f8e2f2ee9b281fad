// Sampled distances are counted in buckets of 1/64 of their powers of two, so that their memory is
// bounded too; all sizes at which the curve is computed are borders of buckets.
//
// Each touch is counted by the rate at its time. The paper rescales what was counted before when
// the rate goes down, which is the same up to a factor that both numerator and denominator have.

#include "analyze/miss_ratio_curve.h"

#include "analyze/lines.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace analyze {
namespace {

constexpr uint64_t kHashes = 1 << 24; // the paper's modulus
constexpr unsigned kSteps = 6;        // log2 of the buckets of a power of two
constexpr uint64_t kFirstSize = 16;   // lines: 1 KiB

// The finaliser of MurmurHash3 (Appleby): each bit of the line changes half of the others.
uint64_t hash_of(uint64_t line) {
  line ^= line >> 33;
  line *= 0xff51afd7ed558ccd;
  line ^= line >> 33;
  line *= 0xc4ceb9fe1a85ec53;
  return (line ^ line >> 33) % kHashes;
}

size_t bucket_of(uint64_t distance) {
  constexpr uint64_t kExact = uint64_t{2} << kSteps;
  if (distance < kExact)
    return distance;
  const auto power = static_cast<unsigned>(std::bit_width(distance)) - 1 - kSteps;
  return (size_t{power} << kSteps) + static_cast<size_t>(distance >> power);
}

constexpr size_t kBuckets = (64 - kSteps + 1) << kSteps;

} // namespace

size_t MissRatioCurve::steepest() const {
  size_t best = points.size();
  double most = .1;
  for (size_t i = 0; i + 2 < points.size(); i++)
    if (const double fall = points[i].miss_ratio - points[i + 2].miss_ratio; fall > most) {
      most = fall;
      best = i;
    }
  return best;
}

std::vector<uint64_t> curve_sizes(double lines) {
  std::vector<uint64_t> sizes;
  for (uint64_t size = kFirstSize; size < uint64_t{1} << 40; size *= 2) {
    sizes.push_back(size);
    if (double(size) >= lines)
      break;
    sizes.push_back(size + size / 2);
    if (double(sizes.back()) >= lines)
      break;
  }
  return sizes;
}

MissRatioCurve exact_curve(const ReuseDistances &distances) {
  MissRatioCurve curve;
  curve.touches = distances.touches();
  curve.lines = double(distances.first_touches());
  curve.sampled_lines = distances.first_touches();
  const std::vector<uint64_t> &histogram = distances.histogram();
  uint64_t hits = 0;
  size_t distance = 0;
  for (uint64_t size : curve_sizes(curve.lines)) {
    for (; distance < std::min<size_t>(size, histogram.size()); distance++)
      hits += histogram[distance];
    curve.points.push_back(
        {size, curve.touches ? double(curve.touches - hits) / double(curve.touches) : 0});
  }
  return curve;
}

SampledCurve::SampledCurve(size_t lines)
    : most_(std::max<size_t>(lines, 1)), threshold_(kHashes), histogram_(kBuckets) {}

double SampledCurve::rate() const {
  return double(threshold_) / double(kHashes);
}

void SampledCurve::accesses(const profile::AccessOrigin &origin,
                            std::span<const profile::Access> batch) {
  const uint64_t space = spaces_.of(origin.process);
  for (const profile::Access &each : batch)
    for_each_line(each.address + space, each.size, kLineShift, [&](uint64_t line) {
      touches_++;
      touch(line);
    });
}

// A line is at the top that was not there; another one had to make room for it, or none.
void SampledCurve::rise(uint64_t line, uint64_t dropped) {
  if (const uint64_t hash = hash_of(line); hash < threshold_) {
    const uint64_t distance = distances_.forget(line);
    if (distance == StackDistances::kFirst) {
      first_ += weight_;
      add(line, hash);
    } else {
      const double all = double(RecentLines::kSize) + double(distance) * weight_;
      histogram_[bucket_of(static_cast<uint64_t>(all))] += weight_;
    }
  }
  if (dropped != RecentLines::kNoLine && hash_of(dropped) < threshold_)
    distances_.touch(dropped);
}

// If there are more lines than wanted, those with the highest hash are sampled no more.
void SampledCurve::add(uint64_t line, uint64_t hash) {
  sampled_.emplace(hash, line);
  if (sampled_.size() <= most_)
    return;
  threshold_ = sampled_.top().first;
  while (!sampled_.empty() && sampled_.top().first == threshold_) {
    distances_.forget(sampled_.top().second);
    sampled_.pop();
  }
  weight_ = threshold_ ? 1 / rate() : 1;
}

MissRatioCurve SampledCurve::curve() const {
  MissRatioCurve curve;
  curve.touches = touches_;
  curve.sampled_share = rate();
  curve.sampled_lines = sampled_.size();
  curve.lines = threshold_ ? double(sampled_.size()) / rate() : 0;
  double of_top = 0; // hits of the smallest size, which is that of the top
  for (uint64_t touches : of_top_)
    of_top += double(touches);
  double counted = of_top + first_;
  for (double touches : histogram_)
    counted += touches;
  // The sampled lines are touched more or less often than the average. What lacks is taken to be of
  // the nearest distance, which lines have that are touched often, and what is too much as well
  // (SHARDS_adj), as far as there is anything.
  const double lacking = double(touches_) - counted;
  double below = 0;
  size_t bucket = 0;
  for (uint64_t size : curve_sizes(curve.lines)) {
    for (const size_t end = bucket_of(size); bucket < end; bucket++)
      below += histogram_[bucket];
    const double hits = of_top + (size > RecentLines::kSize ? std::max(below + lacking, 0.) : 0.);
    const double ratio = touches_ ? 1 - hits / double(touches_) : 0;
    curve.points.push_back({size, std::clamp(ratio, 0., 1.)});
  }
  return curve;
}

} // namespace analyze
