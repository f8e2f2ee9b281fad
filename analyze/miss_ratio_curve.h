// `assay trace mrc`: of all touches, the share that a cache of each size misses: fully associative,
// of lines of 64 bytes, replacing the line that was used longest ago; shared by all threads.
//
// Exact from the stack distances of all touches, which needs memory for each line that is ever
// touched; or from those of sampled lines, in memory that is bounded. Sampled are lines whose hash
// lies below a threshold, and the threshold goes down whenever there are more of them than wanted
// (Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015: fixed
// size, with the correction that they call SHARDS_adj). At a rate R a distance between sampled
// lines stands for one that is 1/R times as long, and a touch for 1/R touches. Other than there,
// touches of the 16 lines that were touched last are all counted: a few lines that are touched all
// the time, such as those of the call stack, are most of the touches of a program, and whether
// these lines are sampled would decide about the curve.
#pragma once

#include "analyze/address_spaces.h"
#include "analyze/reuse_distances.h"
#include "analyze/stack_distances.h"
#include "profile/access_stream.h"

#include <cstddef>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

namespace analyze {

struct MissRatioPoint {
  uint64_t lines = 0; // that the cache holds
  double miss_ratio = 0;
};

struct MissRatioCurve {
  uint64_t touches = 0;
  double lines = 0;           // that were ever touched; an estimate, if it was sampled
  double sampled_share = 1;   // of the lines, at the end
  uint64_t sampled_lines = 0; // at the end
  // Sizes of powers of two and halfway between, from 1 KiB on to where only first touches miss.
  std::vector<MissRatioPoint> points;

  // Between this point and the second one behind it, twice as large, the curve falls most;
  // points.size() if nowhere by a tenth.
  size_t steepest() const;
};

// Sizes, in lines, at which curves are computed, until one holds `lines`.
std::vector<uint64_t> curve_sizes(double lines);

MissRatioCurve exact_curve(const ReuseDistances &distances);

class SampledCurve final : public profile::AccessSink {
public:
  // At most so many lines at once.
  explicit SampledCurve(size_t lines);
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override;
  MissRatioCurve curve() const;

private:
  void touch(uint64_t line) {
    uint64_t dropped;
    const unsigned recent = top_.touch(line, dropped);
    if (recent < RecentLines::kSize)
      of_top_[recent]++;
    else
      rise(line, dropped);
  }
  void rise(uint64_t line, uint64_t dropped);
  void add(uint64_t line, uint64_t hash);
  double rate() const;

  size_t most_;
  uint64_t threshold_;
  double weight_ = 1; // 1 / rate
  uint64_t touches_ = 0;
  RecentLines top_;
  uint64_t of_top_[RecentLines::kSize] = {}; // touches by their distance
  StackDistances distances_;                 // of the sampled lines that are not at the top
  std::priority_queue<std::pair<uint64_t, uint64_t>> sampled_; // hash and line, the highest first
  std::vector<double> histogram_;                              // estimated touches by bucket_of()
  double first_ = 0;                                           // estimated first touches
  AddressSpaces spaces_;
};

} // namespace analyze
