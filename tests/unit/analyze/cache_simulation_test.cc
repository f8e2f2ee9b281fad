// The simulation against another one that is written without any cleverness, and against misses
// that are known by construction.

#include "analyze/access_counts.h"
#include "analyze/cache_simulation.h"
#include "base/fail.h"
#include "tests/unit/analyze/access_generators.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace {

using analyze::CacheSettings;
using analyze::CacheSimulation;
using analyze::Level;

// A set is a map from the time of the last use to the block.
class PlainCache {
public:
  PlainCache(uint64_t sets, uint64_t ways) : ways_(ways), sets_(sets) {}
  bool touch(uint64_t block) {
    auto &set = sets_[block % sets_.size()];
    bool hit = false;
    for (auto at = set.begin(); at != set.end(); ++at)
      if (at->second == block) {
        set.erase(at);
        hit = true;
        break;
      }
    set[++time_] = block;
    if (set.size() > ways_)
      set.erase(set.begin());
    return hit;
  }

private:
  uint64_t ways_, time_ = 0;
  std::vector<std::map<uint64_t, uint64_t>> sets_;
};

struct PlainLevels {
  explicit PlainLevels(const CacheSettings &s)
      : l1(s.l1.sets(), s.l1.ways), l2(s.l2->sets(), s.l2->ways), llc(s.llc->sets(), s.llc->ways),
        tlb(s.tlb.entries / s.tlb.ways, s.tlb.ways),
        l2_tlb(s.l2_tlb->entries / s.l2_tlb->ways, s.l2_tlb->ways), page(s.page_bytes) {}
  void access(const profile::Access &access) {
    for (uint64_t byte = access.address; byte < access.address + access.size; byte++) {
      if (byte != access.address && byte % 64)
        continue;
      touches++;
      if (!l1.touch(byte / 64)) {
        misses[0]++;
        if (!l2.touch(byte / 64)) {
          misses[1]++;
          if (!llc.touch(byte / 64))
            misses[2]++;
        }
      }
      if (!tlb.touch(byte / page)) {
        misses[3]++;
        misses[4] += !l2_tlb.touch(byte / page);
      }
    }
  }
  PlainCache l1, l2, llc, tlb, l2_tlb;
  uint64_t page, touches = 0, misses[5] = {};
};

void expect_equal(const CacheSettings &settings, const test::Accesses &accesses) {
  CacheSimulation simulation(settings);
  for (size_t at = 0; at < accesses.size(); at += 1000)
    simulation.accesses(
        {}, std::span(accesses).subspan(at, std::min<size_t>(1000, accesses.size() - at)));
  PlainLevels plain(settings);
  for (const profile::Access &each : accesses)
    plain.access(each);
  const analyze::CacheSums sums = simulation.all();
  EXPECT_EQ(sums.touches, plain.touches);
  for (unsigned level = 0; level < analyze::kLevels; level++)
    EXPECT_EQ(sums.misses[level], plain.misses[level]) << level;
}

CacheSettings small() {
  CacheSettings settings;
  settings.l1 = {4096, 2, 64};
  settings.l2 = analyze::CacheShape{3 * 64 * 20, 20, 64}; // sets that are no power of two
  settings.llc = analyze::CacheShape{1 << 18, 16, 64};
  settings.tlb = {16, 4};
  settings.l2_tlb = analyze::TlbShape{96, 6};
  return settings;
}

TEST(CacheSimulation, EqualsOneWithoutCleverness) {
  expect_equal({}, test::program_like(600'000, 1));
  expect_equal(small(), test::program_like(400'000, 2));
  expect_equal(small(), test::zipf(20'000, .8, 100'000, 3));
  expect_equal(small(), test::loop(65, 100'000));
  CacheSettings large_pages = small();
  large_pages.page_bytes = 2 << 20;
  expect_equal(large_pages, test::program_like(100'000, 4));
}

TEST(CacheSimulation, ALoopThatFitsMissesOnce) {
  CacheSimulation simulation(CacheSettings{});
  simulation.accesses({}, test::loop(512, 10'000)); // 32 KiB
  EXPECT_EQ(simulation.all().missed(Level::l1), 512u);
  EXPECT_EQ(simulation.all().missed(Level::tlb), 9u); // lines from 1000 on
  CacheSimulation larger(CacheSettings{});
  larger.accesses({}, test::loop(1024, 10'240)); // each set gets twice as many lines as it has ways
  EXPECT_EQ(larger.all().missed(Level::l1), 10'240u);
  EXPECT_EQ(larger.all().missed(Level::l2), 1024u);
}

TEST(CacheSimulation, ThreadsShareTheLastLevelOnly) {
  CacheSimulation simulation(CacheSettings{});
  const test::Accesses accesses = test::loop(100, 1000);
  simulation.accesses({1, 1, 1, false}, accesses);
  simulation.accesses({1, 2, 2, false}, accesses);
  EXPECT_EQ(simulation.all().missed(Level::l1), 200u);
  EXPECT_EQ(simulation.all().missed(Level::l2), 200u);
  EXPECT_EQ(simulation.all().missed(Level::llc), 100u);
  EXPECT_EQ(simulation.threads(), 2u);
}

TEST(CacheSimulation, ProcessesHaveMemoryOfTheirOwn) {
  CacheSimulation simulation(CacheSettings{});
  const test::Accesses accesses = test::loop(100, 1000);
  simulation.accesses({1, 1, 1, false}, accesses);
  simulation.accesses({2, 2, 2, false}, accesses);
  EXPECT_EQ(simulation.all().missed(Level::llc), 200u);
}

TEST(CacheSimulation, TheStepOfMissesIsKnown) {
  CacheSimulation simulation(CacheSettings{});
  test::Accesses accesses;
  for (uint64_t column = 0; column < 100; column++)
    for (uint64_t row = 0; row < 1000; row++)
      accesses.push_back({column * 8 + row * 8192, 0, 8, false});
  simulation.accesses({}, accesses);
  EXPECT_EQ(simulation.strides()[0].stride, 8192);
  EXPECT_GT(simulation.strides()[0].votes, 90'000u);
}

TEST(CacheSimulation, ShapesHaveUnits) {
  const analyze::CacheShape shape = analyze::parse_cache_shape("48KiB,12", "--l1");
  EXPECT_EQ(shape.bytes, 49152u);
  EXPECT_EQ(shape.sets(), 64u);
  EXPECT_EQ(shape.text(), "48KiB,12,64");
  EXPECT_EQ(analyze::parse_tlb_shape("1536,12", "--tlb").text(), "1536,12");
  for (const char *wrong :
       {"", "32KiB", "32K,8", "32KiB,0", "32KiB,7", "32KiB,8,48", "32KiB,8,64,1"})
    EXPECT_THROW(analyze::parse_cache_shape(wrong, "--l1"), base::Failure) << wrong;
  for (const char *wrong : {"", "64", "64,0", "64,7", "0,4", "64,4,4"})
    EXPECT_THROW(analyze::parse_tlb_shape(wrong, "--tlb"), base::Failure) << wrong;
  CacheSettings settings;
  settings.l1.line_bytes = 128;
  EXPECT_THROW(CacheSimulation{settings}, base::Failure);
}

TEST(AccessCounts, PartsSumToTheWhole) {
  const test::Accesses accesses = test::program_like(300'000, 5);
  analyze::AccessCounts counts;
  for (size_t at = 0; at < accesses.size(); at += 1000)
    counts.accesses({1, static_cast<uint32_t>(at % 3), 1, false},
                    std::span(accesses).subspan(at, 1000));
  std::set<uint64_t> lines, written_lines, pages, written_pages;
  uint64_t bytes = 0, writes = 0;
  for (const profile::Access &each : accesses) {
    bytes += each.size;
    writes += each.is_write;
    for (uint64_t byte = each.address; byte < each.address + each.size; byte++) {
      lines.insert(byte / 64);
      pages.insert(byte / 4096);
      if (each.is_write) {
        written_lines.insert(byte / 64);
        written_pages.insert(byte / 4096);
      }
    }
  }
  EXPECT_EQ(counts.all().accesses(), accesses.size());
  EXPECT_EQ(counts.all().writes(), writes);
  EXPECT_EQ(counts.all().bytes, bytes);
  const auto size = counts.footprint();
  EXPECT_EQ(size.lines, lines.size());
  EXPECT_EQ(size.written_lines, written_lines.size());
  EXPECT_EQ(size.pages, pages.size());
  EXPECT_EQ(size.written_pages, written_pages.size());
  analyze::AccessSums of_threads;
  for (const auto &[thread, sums] : counts.of_thread())
    of_threads += sums;
  EXPECT_EQ(of_threads.accesses(), accesses.size());
  EXPECT_EQ(of_threads.bytes, bytes);
  EXPECT_EQ(counts.of_thread().size(), 3u);
}

// Hears of a loop access by access.
class Expanded : public profile::AccessSink {
public:
  explicit Expanded(profile::AccessSink &to) : to_(to) {}
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override {
    to_.accesses(origin, batch);
  }

private:
  profile::AccessSink &to_;
};

TEST(AccessCounts, ALoopIsWhatItsIterationsAre) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 300; round++) {
    analyze::AccessCounts whole, each;
    Expanded expanded(each);
    for (int loop = 0; loop < 3; loop++) {
      std::vector<profile::AccessRun> body;
      for (uint32_t i = 0; i < 1 + random() % 4; i++) {
        const uint64_t steps[] = {0, 8, 64, random() % 64, random() % 10'000};
        uint64_t step = steps[random() % 5];
        if (random() % 2)
          step = 0 - step;
        const auto size = static_cast<uint16_t>(1 << random() % 7);
        body.push_back({{(1 << 26) + random() % 100'000, i, size, random() % 2 == 0}, step});
      }
      const uint64_t times = 1 + random() % 500;
      whole.loop({1, 2, 3, false}, body, times);
      expanded.loop({1, 2, 3, false}, body, times);
    }
    const auto a = whole.footprint(), b = each.footprint();
    EXPECT_EQ(a.lines, b.lines);
    EXPECT_EQ(a.written_lines, b.written_lines);
    EXPECT_EQ(a.pages, b.pages);
    EXPECT_EQ(a.written_pages, b.written_pages);
    ASSERT_EQ(whole.of_site().size(), each.of_site().size());
    for (size_t site = 0; site < whole.of_site().size(); site++) {
      EXPECT_EQ(whole.of_site()[site].reads(), each.of_site()[site].reads());
      EXPECT_EQ(whole.of_site()[site].writes(), each.of_site()[site].writes());
      EXPECT_EQ(whole.of_site()[site].bytes, each.of_site()[site].bytes);
    }
    EXPECT_EQ(whole.of_thread().begin()->second.bytes, each.of_thread().begin()->second.bytes);
  }
}

TEST(Footprint, RangesAreTheirLines) {
  analyze::Footprint ranges, lines;
  std::mt19937_64 random(6);
  for (int i = 0; i < 200; i++) {
    const uint64_t first = random() % 100'000, last = first + random() % 300;
    const bool is_write = random() % 2;
    ranges.touch_lines(first, last, is_write);
    for (uint64_t line = first; line <= last; line++)
      lines.touch(line * 64 + random() % 64, 1, is_write);
  }
  EXPECT_EQ(ranges.size().lines, lines.size().lines);
  EXPECT_EQ(ranges.size().written_lines, lines.size().written_lines);
  EXPECT_EQ(ranges.size().pages, lines.size().pages);
}

} // namespace
