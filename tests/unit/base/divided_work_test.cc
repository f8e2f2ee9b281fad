#include "base/divided_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace {

using base::divide_work;
using base::Division;

uint64_t one(size_t) {
  return 1;
}

TEST(DividedWork, DoesEachItemOnce) {
  for (unsigned threads : {1u, 2u, 7u, 64u})
    for (size_t items : {size_t{0}, size_t{1}, size_t{5}, size_t{10000}}) {
      std::vector<std::atomic<int>> done(items);
      divide_work(items, {threads}, one, [&](size_t item, unsigned) { done[item]++; });
      for (const std::atomic<int> &times : done)
        ASSERT_EQ(times, 1);
    }
}

TEST(DividedWork, NoThreadDoesTwoItemsAtOneTime) {
  constexpr unsigned kThreads = 4;
  std::atomic<int> busy[kThreads] = {};
  std::atomic<bool> twice = false;
  divide_work(1000, {kThreads}, one, [&](size_t, unsigned thread) {
    twice = twice || busy[thread]++ != 0;
    std::this_thread::yield();
    busy[thread]--;
  });
  EXPECT_FALSE(twice);
}

TEST(DividedWork, BeginsInOrder) {
  std::mutex mutex;
  std::vector<size_t> order;
  divide_work(500, {1}, one, [&](size_t item, unsigned) {
    std::lock_guard lock(mutex);
    order.push_back(item);
  });
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), 500u);
}

TEST(DividedWork, KeepsToTheRoom) {
  auto size = [](size_t item) -> uint64_t { return item == 50 ? 1000 : item % 7; };
  std::atomic<uint64_t> taken = 0, largest = 0;
  std::atomic<bool> beside = false;
  divide_work(200, {6, 10}, size, [&](size_t item, unsigned) {
    const uint64_t mine = std::min<uint64_t>(size(item), 10), all = taken += mine;
    for (uint64_t known = largest; all > known && !largest.compare_exchange_weak(known, all);) {
    }
    beside = beside || (item == 50 && all != 10);
    std::this_thread::yield();
    taken -= mine;
  });
  EXPECT_LE(largest, 10u);
  EXPECT_FALSE(beside); // what is too large is alone
}

TEST(DividedWork, WhatIsMoreThanAShareIsTheCallers) {
  const auto caller = std::this_thread::get_id();
  auto size = [](size_t item) -> uint64_t { return item % 3; };
  std::atomic<bool> elsewhere = false;
  std::atomic<size_t> done = 0;
  divide_work(1000, {4, 100, 1}, size, [&](size_t item, unsigned thread) {
    const bool is_caller = std::this_thread::get_id() == caller;
    elsewhere = elsewhere || (size(item) > 1 && !is_caller) || is_caller != (thread == 0);
    done++;
  });
  EXPECT_FALSE(elsewhere);
  EXPECT_EQ(done, 1000u);
}

TEST(DividedWork, ThrowsWhatAnItemThrew) {
  for (unsigned threads : {1u, 4u}) {
    std::atomic<size_t> begun = 0;
    auto fail_at_10 = [&](size_t item, unsigned) {
      begun++;
      if (item == 10)
        throw std::runtime_error("item 10");
    };
    EXPECT_THROW(divide_work(100000, {threads}, one, fail_at_10), std::runtime_error);
    EXPECT_LT(begun, 100000u);
  }
}

TEST(DividedWork, ThereIsACpu) {
  EXPECT_GE(base::usable_cpus(), 1u);
}

} // namespace
