// Hotlists against their definitions: what the papers say of them holds in distribution over many
// seeds, not in one example.
#include "profile/hotlist.h"

#include "base/fail.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <vector>

using namespace profile;

namespace {

// Each value of a stream is a window of its own.
void feed(Hotlist &list, const std::vector<uint64_t> &stream) {
  for (uint64_t value : stream) {
    list.begin_window(1);
    list.add(value, 1, 1);
  }
}

std::vector<uint64_t> zipf_stream(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> weights(1000);
  for (size_t i = 0; i < weights.size(); i++)
    weights[i] = 1 / double(i + 1);
  std::discrete_distribution<uint64_t> draw(weights.begin(), weights.end());
  std::vector<uint64_t> stream(size);
  for (uint64_t &value : stream)
    value = draw(random);
  return stream;
}

double count_of(const Hotlist &list, uint64_t value) {
  for (const HotEntry &entry : list.entries())
    if (entry.value == value)
      return double(entry.count);
  return 0;
}

const HotEntry *entry_of(const Hotlist &list, uint64_t value) {
  for (const HotEntry &entry : list.entries())
    if (entry.value == value)
      return &entry;
  return nullptr;
}

} // namespace

TEST(Hotlist, IsExactWhileValuesFit) {
  Hotlist list(HotlistKind::space_saving, 4, 1);
  feed(list, {7, 7, 7, 8, 7, 9, 8, 7});
  ASSERT_EQ(list.entries().size(), 3u);
  EXPECT_EQ(count_of(list, 7), 5);
  EXPECT_EQ(count_of(list, 8), 2);
  EXPECT_EQ(count_of(list, 9), 1);
  EXPECT_EQ(list.values(), 8u);
  auto hot = list.hot();
  ASSERT_EQ(hot.size(), 2u); // 9 came in one window
  EXPECT_EQ(hot[0].value, 7u);
  EXPECT_DOUBLE_EQ(hot[0].share, 5. / 8);
  EXPECT_LT(hot[0].low, 5. / 8);
  EXPECT_GT(hot[0].high, 5. / 8);
}

// Metwally et al., lemma 3.4: a count is never too low, and too high by at most `error`, which is at most n / capacity.
TEST(Hotlist, SpaceSavingKeepsItsBounds) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    auto stream = zipf_stream(5000, seed);
    std::map<uint64_t, uint64_t> truth;
    for (uint64_t value : stream)
      truth[value]++;
    Hotlist list(HotlistKind::space_saving, 12, seed);
    feed(list, stream);
    uint64_t sum = 0;
    for (const HotEntry &entry : list.entries()) {
      EXPECT_GE(entry.count, truth[entry.value]);
      EXPECT_LE(entry.count - entry.error, truth[entry.value]);
      EXPECT_LE(entry.error, stream.size() / 12);
      sum += entry.count;
    }
    EXPECT_EQ(sum, stream.size());
  }
}

TEST(Hotlist, MergedSpaceSavingKeepsItsBounds) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    auto first = zipf_stream(3000, seed), second = zipf_stream(2000, seed + 1000);
    std::map<uint64_t, uint64_t> truth;
    for (const auto *stream : {&first, &second})
      for (uint64_t value : *stream)
        truth[value]++;
    Hotlist a(HotlistKind::space_saving, 12, 1), b(HotlistKind::space_saving, 12, 2);
    feed(a, first);
    feed(b, second);
    Hotlist ab = a, ba = b;
    ab.merge(b);
    ba.merge(a);
    EXPECT_EQ(ab.entries(), ba.entries());
    EXPECT_EQ(ab.values(), 5000u);
    for (const HotEntry &entry : ab.entries()) {
      EXPECT_GE(entry.count, truth[entry.value]);
      EXPECT_LE(entry.count - entry.error, truth[entry.value]);
      EXPECT_LE(entry.error, 5000u / 12 + 2);
    }
  }
}

// Gibbons and Matias, section 3: a concise sample is a uniform sample, so threshold times count is
// an unbiased estimate of each frequency.
TEST(Hotlist, ConciseSamplesAreUnbiased) {
  auto stream = zipf_stream(4000, 5);
  std::map<uint64_t, double> truth, sums;
  for (uint64_t value : stream)
    truth[value]++;
  constexpr int kRuns = 600;
  for (int run = 0; run < kRuns; run++) {
    Hotlist list(HotlistKind::concise, 12, 77 + run);
    feed(list, stream);
    for (uint64_t value : {0, 1, 2, 5})
      sums[value] += count_of(list, value) * list.threshold();
  }
  for (uint64_t value : {0, 1, 2, 5}) {
    // The variance of such an estimate is about frequency * threshold, here about 150.
    const double error = 4 * std::sqrt(truth[value] * 300 / kRuns);
    EXPECT_NEAR(sums[value] / kRuns, truth[value], error) << value;
  }
}

// Section 4: what a counting sample misses of a value is geometric, min(frequency, G), with mean
// about threshold - 1; the compensation makes it right on average for frequent values.
TEST(Hotlist, CountingSamplesMissAGeometricNumber) {
  std::vector<uint64_t> stream;
  for (int i = 0; i < 3000; i++)
    stream.push_back(i % 3 ? uint64_t(1000 + i) : 1); // 1000 times the value 1, all others once
  constexpr int kRuns = 600;
  double missed = 0, thresholds = 0, estimate = 0;
  for (int run = 0; run < kRuns; run++) {
    Hotlist list(HotlistKind::counting, 12, 99 + run);
    feed(list, stream);
    missed += 1000 - count_of(list, 1);
    thresholds += list.threshold();
    if (const HotEntry *entry = entry_of(list, 1))
      estimate += list.share_of(*entry).share * 3000;
  }
  missed /= kRuns;
  thresholds /= kRuns;
  EXPECT_NEAR(missed, thresholds - 1, 4 * thresholds / std::sqrt(kRuns) + 10);
  EXPECT_NEAR(estimate / kRuns, 1000, .6 * thresholds);
}

// A merged concise sample is a sample of the whole.
TEST(Hotlist, MergedConciseSamplesAreThoseOfOneStream) {
  auto first = zipf_stream(3000, 11), second = zipf_stream(1000, 12);
  auto whole = first;
  whole.insert(whole.end(), second.begin(), second.end());
  constexpr int kRuns = 600;
  double merged = 0, single = 0, merged_square = 0, single_square = 0;
  for (int run = 0; run < kRuns; run++) {
    Hotlist a(HotlistKind::concise, 12, 3 * run + 1), b(HotlistKind::concise, 12, 3 * run + 2),
        one(HotlistKind::concise, 12, 3 * run + 3);
    feed(a, first);
    feed(b, second);
    feed(one, whole);
    a.merge(b);
    EXPECT_EQ(a.values(), one.values());
    const double x = count_of(a, 0) * a.threshold(), y = count_of(one, 0) * one.threshold();
    merged += x, merged_square += x * x, single += y, single_square += y * y;
  }
  const double mean = single / kRuns, variance = single_square / kRuns - mean * mean;
  const double merged_mean = merged / kRuns,
               merged_variance = merged_square / kRuns - merged_mean * merged_mean;
  EXPECT_NEAR(merged_mean, mean, 4 * std::sqrt((variance + merged_variance) / kRuns));
  EXPECT_NEAR(std::sqrt(merged_variance / variance), 1, .25);
}

TEST(Hotlist, NothingIsHotWhereAllValuesDiffer) {
  for (HotlistKind kind : {HotlistKind::space_saving, HotlistKind::counting, HotlistKind::concise})
    for (uint64_t seed = 1; seed <= 100; seed++) {
      Hotlist list(kind, 12, seed);
      std::vector<uint64_t> stream(5000);
      std::iota(stream.begin(), stream.end(), seed * 1'000'000);
      feed(list, stream);
      EXPECT_TRUE(list.hot().empty()) << hotlist_word(kind) << " " << seed;
      EXPECT_LE(list.entries().size(), 12u);
    }
}

// The interval holds the truth in 91 to 98 % of runs, also where values come in windows that agree in themselves.
TEST(Hotlist, IntervalsCoverTheTruth) {
  for (int repeats : {1, 8})
    for (double truth : {.05, .3, .95}) {
      std::mt19937_64 random(uint64_t(repeats * 100 + truth * 1000));
      constexpr int kRuns = 1000, kWindows = 200;
      int covered = 0;
      for (int run = 0; run < kRuns; run++) {
        Hotlist list(HotlistKind::space_saving, 12, 1);
        for (int window = 0; window < kWindows; window++) {
          // All values of a window are the same: as in a loop whose value seldom changes.
          const uint64_t value = std::bernoulli_distribution(truth)(random) ? 1 : 2;
          list.begin_window(uint64_t(repeats));
          list.add(value, uint64_t(repeats), uint64_t(repeats));
        }
        const HotEntry *entry = entry_of(list, 1);
        const HotValue share = entry ? list.share_of(*entry) : HotValue{1, 0, 0, .05};
        covered += share.low <= truth && truth <= share.high;
      }
      EXPECT_GE(covered, kRuns * .91) << truth << " " << repeats;
      EXPECT_LE(covered, kRuns * .985) << truth << " " << repeats;
    }
}

TEST(Hotlist, RefusesWhatMakesNoSense) {
  EXPECT_THROW(Hotlist(HotlistKind::space_saving, 0, 1, 1, 1, 1, 0, {}), base::Failure);
  EXPECT_THROW(Hotlist(HotlistKind(9), 4, 1, 1, 1, 1, 0, {}), base::Failure);
  EXPECT_THROW(Hotlist(HotlistKind::concise, 4, 1, 1, 1, 1, 500, {}), base::Failure);
  EXPECT_THROW(Hotlist(HotlistKind::space_saving, 4, 1, 1, 2, 1, 0, {}), base::Failure);
  EXPECT_THROW(
      Hotlist(HotlistKind::space_saving, 4, 1, 3, 1, 1, 0, {{2, 1, 0, 1, 1}, {1, 1, 0, 1, 1}}),
      base::Failure);
  EXPECT_THROW(Hotlist(HotlistKind::space_saving, 4, 1, 3, 1, 1, 0, {{2, 4, 0, 1, 1}}),
               base::Failure);
  EXPECT_THROW(hotlist_kind("best"), base::Failure);
}
