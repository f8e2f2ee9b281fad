// Distances against a list that is searched from its begin; curves against the misses of an LRU
// list, and of samples against exact ones.

#include "analyze/miss_ratio_curve.h"
#include "tests/unit/analyze/access_generators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using analyze::ReuseDistances;
using analyze::StackDistances;

// The lines by last touch, latest first.
class NaiveStack {
public:
  uint64_t touch(uint64_t line) {
    auto at = std::find(lines_.begin(), lines_.end(), line);
    const uint64_t distance =
        at == lines_.end() ? StackDistances::kFirst : static_cast<uint64_t>(at - lines_.begin());
    if (at != lines_.end())
      lines_.erase(at);
    lines_.insert(lines_.begin(), line);
    return distance;
  }
  void forget(uint64_t line) { std::erase(lines_, line); }
  size_t size() const { return lines_.size(); }

private:
  std::vector<uint64_t> lines_;
};

TEST(StackDistances, AreThoseOfAList) {
  for (uint64_t seed = 0; seed < 6; seed++) {
    std::mt19937_64 random(seed);
    const uint64_t places[] = {3, 17, 100, 1000, 5000, 20'000};
    StackDistances distances;
    NaiveStack naive;
    for (int i = 0; i < 40'000; i++) {
      uint64_t line = random() % places[seed];
      if (random() % 2)
        line = random() % 30;
      ASSERT_EQ(distances.touch(line), naive.touch(line)) << seed << " " << i;
    }
    EXPECT_EQ(distances.lines(), naive.size());
  }
}

TEST(StackDistances, ForgottenLinesAreNew) {
  std::mt19937_64 random(7);
  StackDistances distances;
  NaiveStack naive;
  for (int i = 0; i < 60'000; i++) {
    const uint64_t line = random() % 3 ? random() % 20 : random() % 6000;
    if (random() % 4 == 0) {
      distances.forget(line);
      naive.forget(line);
    }
    ASSERT_EQ(distances.touch(line), naive.touch(line)) << i;
    ASSERT_EQ(distances.lines(), naive.size());
  }
}

TEST(StackDistances, TimesMayBeUsedUp) { // 2^16 of them at first
  StackDistances distances;
  for (uint64_t i = 0; i < 3'000'000; i++) {
    const uint64_t distance = distances.touch(i % 50'000);
    ASSERT_EQ(distance, i < 50'000 ? StackDistances::kFirst : 49'999);
  }
}

ReuseDistances distances_of(const test::Accesses &accesses) {
  ReuseDistances distances;
  distances.accesses({}, accesses);
  return distances;
}

TEST(ReuseDistances, PartsSumToTheWhole) {
  const ReuseDistances distances = distances_of(test::program_like(300'000, 1));
  analyze::ReuseSums all;
  for (const analyze::ReuseSums &site : distances.of_site())
    all += site;
  EXPECT_EQ(all.accesses(), distances.touches());
  EXPECT_EQ(all.first, distances.first_touches());
  uint64_t sum = all.first;
  for (unsigned bucket = 0; bucket < analyze::ReuseSums::kBuckets; bucket++) {
    uint64_t in_histogram = 0;
    const uint64_t end = analyze::ReuseSums::least_of(bucket + 1);
    for (uint64_t d = analyze::ReuseSums::least_of(bucket);
         d < std::min<uint64_t>(end, distances.histogram().size()); d++)
      in_histogram += distances.histogram()[d];
    EXPECT_EQ(all.count[bucket], in_histogram) << bucket;
    sum += all.count[bucket];
  }
  EXPECT_EQ(sum, distances.touches());
  EXPECT_EQ(all.beyond(0), distances.touches());
}

TEST(ReuseDistances, AnAccessAcrossLinesTouchesEach) {
  const ReuseDistances distances = distances_of({{60, 0, 8, false}, {60, 0, 8, true}});
  EXPECT_EQ(distances.touches(), 4u);
  EXPECT_EQ(distances.first_touches(), 2u);
  EXPECT_EQ(distances.histogram()[1], 2u);
}

TEST(MissRatioCurve, IsThatOfAnLruCache) {
  const test::Accesses accesses = test::zipf(2000, .9, 30'000, 2);
  const analyze::MissRatioCurve curve = analyze::exact_curve(distances_of(accesses));
  for (const analyze::MissRatioPoint &point : curve.points) {
    std::vector<uint64_t> lru;
    uint64_t misses = 0;
    for (const profile::Access &each : accesses) {
      const uint64_t line = each.address / 64;
      auto at = std::find(lru.begin(), lru.end(), line);
      if (at == lru.end())
        misses++;
      else
        lru.erase(at);
      lru.insert(lru.begin(), line);
      if (lru.size() > point.lines)
        lru.pop_back();
    }
    EXPECT_DOUBLE_EQ(point.miss_ratio, double(misses) / double(accesses.size())) << point.lines;
  }
}

TEST(MissRatioCurve, ItsSteepestPlaceIsWhereALoopFits) {
  const analyze::MissRatioCurve curve =
      analyze::exact_curve(distances_of(test::loop(1000, 100'000)));
  ASSERT_LT(curve.steepest(), curve.points.size());
  EXPECT_LE(curve.points[curve.steepest()].lines, 1000u);
  EXPECT_GE(curve.points[curve.steepest() + 2].lines, 1000u);
}

constexpr size_t kLines = 1 << 15; // the default of the command

// The mean difference over all sizes, which is how the paper measures errors, and the largest one.
std::pair<double, double> errors(const test::Accesses &accesses, size_t sampled_lines) {
  ReuseDistances distances(false);
  analyze::SampledCurve sampled(sampled_lines);
  distances.accesses({}, accesses);
  for (size_t at = 0; at < accesses.size(); at += 4096)
    sampled.accesses({},
                     std::span(accesses).subspan(at, std::min<size_t>(4096, accesses.size() - at)));
  const auto exact = analyze::exact_curve(distances);
  const auto curve = sampled.curve();
  EXPECT_EQ(curve.touches, exact.touches);
  EXPECT_LE(curve.sampled_lines, sampled_lines);
  EXPECT_NEAR(curve.lines / exact.lines, 1, .05);
  double sum = 0, most = 0;
  const size_t points = std::min(exact.points.size(), curve.points.size());
  EXPECT_LE(exact.points.size(), points + 1);
  for (size_t i = 0; i < points; i++) {
    const double error = std::abs(exact.points[i].miss_ratio - curve.points[i].miss_ratio);
    sum += error;
    most = std::max(most, error);
  }
  return {sum / double(points), most};
}

TEST(SampledCurve, IsWithinOnePercentOfTheExactOne) {
  const test::Accesses skewed = test::zipf(300'000, .8, 3'000'000, 3);
  const test::Accesses even = test::zipf(300'000, .4, 2'000'000, 4);
  const test::Accesses loop = test::loop(100'000, 2'000'000);
  const test::Accesses mixed = test::mixture(test::loop(40'000, 1'500'000), skewed, 10'000);
  for (const test::Accesses *each : {&skewed, &even, &loop, &mixed}) {
    const auto [mean, most] = errors(*each, kLines);
    EXPECT_LE(mean, .01);
    EXPECT_LE(most, .05);
  }
}

// Of a few lines that are touched all the time, and in no order, it matters which ones are sampled.
TEST(SampledCurve, IsLessCertainWhereFewLinesAreMostOfAll) {
  const auto [mean, most] = errors(test::zipf(300'000, 1.1, 3'000'000, 4), kLines);
  EXPECT_LE(mean, .015);
  EXPECT_LE(most, .06);
}

TEST(SampledCurve, IsExactWhereAllLinesAreSampled) {
  const auto [mean, most] = errors(test::program_like(100'000, 5), 1 << 20);
  EXPECT_LT(most, 1e-9);
}

} // namespace
