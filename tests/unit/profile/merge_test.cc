// Conservation laws of merging, over random profiles.

#include "tests/unit/profile/profile_builder.h"

#include "base/fail.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

using profile::merge;
using profile::Profile;
using profile_builder::forget_order;
using profile_builder::random_profile;

namespace {

uint64_t objects(const Profile &p) {
  uint64_t sum = 0;
  for (const auto &context : p.heap)
    sum += context.freed.alloc_count + context.live.alloc_count;
  return sum;
}

uint64_t hotness_of_words(const Profile &p) {
  uint64_t sum = 0;
  for (const auto &group : p.object_groups) {
    sum += group.sums.hotness;
    for (const AssayWordCell &cell : group.cells)
      sum += cell.hotness;
  }
  for (const auto &globals : p.object_globals)
    for (const AssayWordRun &run : globals.runs)
      sum += run.units * run.hotness;
  return sum;
}

TEST(Merge, SamplesOfOneProgramAndTheHeapOfAnotherGoIntoOneFile) {
  for (uint64_t seed = 1; seed < 20; seed++)
    for (uint64_t start :
         {uint64_t(0), ~uint64_t(0) >> 1}) { // before all other processes, and behind them
      Profile sampled;
      sampled.processes.emplace_back();
      sampled.processes[0].start_unix_ns = start;
      sampled.processes[0].sampling.emplace();
      sampled.processes[0].ends = {{ASSAY_END_EXIT, 0, 0}};
      sampled.values.samples = 5;
      sampled.values.ends[0] = 5;
      Profile sum = random_profile(seed);
      merge(sum, sampled);
      const Profile again = profile::read_bytes(profile::write_bytes(sum), "sum");
      EXPECT_EQ(again.values.samples, 5u);
      EXPECT_EQ(objects(again), objects(sum));
    }
}

TEST(Merge, WordsOfObjectsAddUp) {
  for (uint64_t seed = 1; seed < 60; seed++) {
    Profile a = random_profile(seed), b = random_profile(seed + 1000);
    uint64_t wanted = hotness_of_words(a) + hotness_of_words(b);
    merge(a, b);
    EXPECT_EQ(hotness_of_words(a), wanted) << seed;
  }
}

TEST(ObjectRuns, OverlapsAddUp) {
  std::vector<AssayWordRun> runs = {{16, 4, 2}, {0, 8, 1}, {24, 1, 5}};
  profile::add_up(runs, 4);
  std::vector<std::array<uint64_t, 3>> found;
  for (const AssayWordRun &run : runs)
    found.push_back({run.offset, run.units, run.hotness});
  std::vector<std::array<uint64_t, 3>> wanted = {{0, 4, 1}, {16, 2, 3}, {24, 1, 8}, {28, 1, 3}};
  EXPECT_EQ(found, wanted);
}

TEST(ObjectSizes, ClassesHoldTheirObjects) {
  for (uint64_t bytes = 1; bytes < 1 << 20; bytes += 1 + bytes / 50) {
    uint64_t size_class = assay_size_class(bytes);
    EXPECT_GE(size_class, bytes);
    EXPECT_LE(size_class, std::max<uint64_t>(bytes + 15, bytes + bytes / 4)) << bytes;
    EXPECT_EQ(assay_size_class(size_class), size_class);
    EXPECT_LE(size_class / 4 / assay_cell_units(size_class, 4), uint64_t{ASSAY_OBJECT_CELLS});
  }
}

// The runtime adds objects one by one, compaction and the tools join blocks: they must agree, wherever a run is cut.
TEST(Hib, AddingObjectsIsJoiningTheirBlocks) {
  std::mt19937_64 random(7);
  auto upto = [&](uint64_t most) { return random() % (most + 1); };
  for (int round = 0; round < 2000; round++) {
    AssayHib added, joined, block;
    assay_hib_clear(&added);
    assay_hib_clear(&joined);
    assay_hib_clear(&block);
    for (uint64_t n = upto(12); n > 0; n--) {
      AssayObject o = {};
      o.size = upto(3) ? upto(5000) : random();
      o.reads = upto(2) * upto(1000);
      o.writes = upto(2) * upto(1000);
      o.alloc_us = upto(1000);
      o.free_us = o.alloc_us + upto(1) * upto(1000);
      o.blocks_spanned = upto(40);
      o.blocks_touched = o.blocks_spanned ? upto(o.blocks_spanned) : 0;
      o.touched_bytes = upto(o.size);
      o.alloc_cpu = (uint32_t)upto(1);
      o.free_cpu = (uint32_t)upto(1);
      o.temporary = (uint32_t)upto(1);
      assay_hib_add(&added, &o);
      assay_hib_add(&block, &o);
      if (upto(2) == 0 || n == 1) {
        assay_hib_merge(&joined, &block, 1);
        assay_hib_clear(&block);
      }
    }
#define ASSAY_HIB(type, name, merge, unit) EXPECT_EQ(added.name, joined.name) << #name;
#include "abi/hib.def"
  }
}

TEST(Merge, ReadOfWrittenIsTheSame) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    Profile p = random_profile(seed);
    EXPECT_TRUE(profile::read_bytes(profile::write_bytes(p), "x") == p) << "seed " << seed;
  }
}

TEST(Merge, ReadOfWrittenSumIsTheSame) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    Profile p = random_profile(seed);
    merge(p, random_profile(seed + 1));
    merge(p, random_profile(seed + 2));
    EXPECT_TRUE(profile::read_bytes(profile::write_bytes(p), "x") == p) << "seed " << seed;
  }
}

TEST(Merge, WithNothingChangesNothing) {
  Profile p = random_profile(5), sum = p, empty;
  merge(sum, empty);
  EXPECT_TRUE(sum == p);
  merge(empty, p);
  EXPECT_TRUE(empty == p);
}

TEST(Merge, IsCommutative) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    Profile a = random_profile(seed), b = random_profile(seed + 1000);
    Profile ab = a, ba = b;
    merge(ab, b);
    merge(ba, a);
    forget_order(ab);
    forget_order(ba);
    EXPECT_TRUE(ab == ba) << "seed " << seed;
  }
}

TEST(Merge, IsAssociative) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    Profile a = random_profile(seed), b = random_profile(seed + 1000),
            c = random_profile(seed + 2000);
    Profile left = a, bc = b, right = a;
    merge(left, b);
    merge(left, c);
    merge(bc, c);
    merge(right, bc);
    EXPECT_TRUE(left == right) << "seed " << seed;
  }
}

TEST(Merge, KeepsEveryObject) {
  Profile a = random_profile(1), b = random_profile(2);
  uint64_t before = objects(a) + objects(b);
  merge(a, b);
  EXPECT_EQ(objects(a), before);
}

TEST(Merge, EventsAndBlocksOutsideAddUp) {
  auto sums = [](const Profile &p) {
    std::array<uint64_t, 4> sum = {};
    for (const auto &event : p.events) {
      sum[0] += event.count;
      sum[1] += event.weight;
    }
    for (const auto &block : p.non_heap) {
      sum[2] += block.reads;
      sum[3] += block.writes;
    }
    return sum;
  };
  for (uint64_t seed = 1; seed <= 40; seed++) {
    Profile a = random_profile(seed), b = random_profile(seed + 1), sum = a;
    merge(sum, b);
    for (size_t i = 0; i < 4; i++)
      EXPECT_EQ(sums(sum)[i], sums(a)[i] + sums(b)[i]) << "seed " << seed;
    EXPECT_LE(sum.non_heap.size(), a.non_heap.size() + b.non_heap.size());
  }
}

TEST(Merge, OriginsKeepContextsApart) {
  profile::Assembler assembler;
  auto stack = assembler.stack({{{profile::ModuleId(), 0x10}}, false});
  profile::heap_context(assembler, stack, {}).peak_bytes = 1;
  profile::heap_context(assembler, stack, {}, {ASSAY_ORIGIN_POOL, "a"}).peak_bytes = 2;
  profile::heap_context(assembler, stack, {}, {ASSAY_ORIGIN_POOL, "b"}).peak_bytes = 3;
  Profile p = assembler.finish(), twice = p;
  merge(twice, p);
  ASSERT_EQ(twice.heap.size(), 3u);
  EXPECT_EQ(twice.heap[2].origin.name, "b");
  EXPECT_EQ(twice.heap[2].peak_bytes, 3u);
}

TEST(Merge, PeaksTakeTheLarger) {
  Profile a = random_profile(3), b = a;
  for (auto &context : b.heap)
    context.peak_bytes *= 2;
  Profile sum = a;
  merge(sum, b);
  ASSERT_EQ(sum.heap.size(), b.heap.size());
  for (size_t i = 0; i < sum.heap.size(); i++)
    EXPECT_EQ(sum.heap[i].peak_bytes, b.heap[i].peak_bytes);
}

// A site may have its most in another process than the one whose peak is the largest.
TEST(Merge, WhatLivedAtThePeakIsOfOneProcess) {
  const auto process = [](uint64_t first, uint64_t second) {
    profile::Assembler assembler;
    auto module = assembler.module("/app", std::vector<uint8_t>(20, 7), true);
    for (auto [address, bytes] :
         {std::pair(uint64_t{0x10}, first), std::pair(uint64_t{0x20}, second)})
      profile::heap_context(assembler, assembler.stack({{{module, address}}, false}), {})
          .at_peak_bytes = bytes;
    return assembler.finish();
  };
  const Profile small = process(50, 20), large = process(10, 100);
  for (bool large_first : {false, true}) {
    Profile sum = large_first ? large : small;
    merge(sum, large_first ? small : large);
    ASSERT_EQ(sum.heap.size(), 2u);
    EXPECT_EQ(sum.heap[0].at_peak_bytes, 10u);
    EXPECT_EQ(sum.heap[1].at_peak_bytes, 100u);
  }
}

TEST(Merge, ACopyOfAFileElsewhereIsTheSameModule) {
  profile::Assembler one, two;
  std::vector<uint8_t> build_id(20, 7);
  for (auto [assembler, path] : {std::pair(&one, "/a/app"), std::pair(&two, "/b/app")}) {
    auto module = assembler->module(path, build_id, true);
    auto stack = assembler->stack({{{module, 0x10}}, false});
    profile::heap_context(*assembler, stack, {}).peak_bytes = 1;
  }
  Profile sum = one.finish();
  merge(sum, two.finish());
  ASSERT_EQ(sum.modules.size(), 1u);
  EXPECT_EQ(sum.modules[0].path, "/a/app");
  EXPECT_EQ(sum.heap.size(), 1u);
}

} // namespace
