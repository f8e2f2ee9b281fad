#include "base/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace {

using base::OrderedWork;

// The earlier an item, the longer it takes to prepare.
void prepare(int item) {
  std::this_thread::sleep_for(std::chrono::microseconds(item % 16 == 0 ? 2000 : 20));
}

TEST(OrderedWork, CompletesInOrder) {
  for (unsigned threads : {0u, 1u, 2u, 7u}) {
    std::vector<int> completed; // never by two at one time: the thread sanitizer would see it
    std::atomic<int> prepared = 0;
    OrderedWork work(threads, 8);
    for (int item = 0; item < 200; item++)
      if (item % 5 == 0)
        work.add([&, item] { completed.push_back(item); });
      else
        work.add(
            [&, item] {
              prepare(item);
              prepared++;
            },
            [&, item] { completed.push_back(item); });
    work.finish();
    EXPECT_EQ(prepared, 160);
    ASSERT_EQ(completed.size(), 200u);
    for (int item = 0; item < 200; item++)
      EXPECT_EQ(completed[size_t(item)], item);
  }
}

TEST(OrderedWork, PreparesSeveralAtOnce) {
  std::atomic<int> begun = 0;
  OrderedWork work(2, 8);
  for (int item = 0; item < 2; item++)
    work.add(
        [&] {
          begun++;
          while (begun < 2)
            std::this_thread::yield();
        },
        [] {});
  work.finish();
  EXPECT_EQ(begun, 2);
}

TEST(OrderedWork, CompletesWithoutTheAddingThread) {
  std::atomic<int> completed = 0;
  OrderedWork work(2, 8);
  for (int item = 0; item < 8; item++)
    work.add([item] { prepare(item); }, [&] { completed++; });
  while (completed < 8)
    std::this_thread::yield();
}

TEST(OrderedWork, WaitsForRoom) {
  constexpr int kRoom = 6;
  std::atomic<int> added = 0, completed = 0, most = 0;
  OrderedWork work(2, kRoom);
  for (int item = 0; item < 300; item++) {
    if (item % 3)
      work.add([item] { prepare(item); }, [&] { completed++; });
    else
      work.add([&] { completed++; });
    added++;
    most = std::max<int>(most, added - completed);
  }
  work.finish();
  EXPECT_EQ(completed, 300);
  EXPECT_LE(most, kRoom + 1); // and the one that is being completed
  EXPECT_GE(most, kRoom / 2);
}

TEST(OrderedWork, TellsWhatFailed) {
  for (bool in_prepare : {true, false}) {
    std::atomic<int> completed = 0;
    OrderedWork work(2, 4);
    EXPECT_THROW(
        {
          for (int item = 0; item < 100000; item++)
            work.add(
                [&, item] {
                  if (in_prepare && item == 20)
                    throw std::runtime_error("no");
                },
                [&, item] {
                  if (!in_prepare && item == 20)
                    throw std::runtime_error("no");
                  completed++;
                });
          work.finish();
        },
        std::runtime_error);
    EXPECT_EQ(completed, 20); // nothing behind what failed
    EXPECT_THROW(work.add([] {}, [] {}), std::runtime_error);
    EXPECT_THROW(work.add([] {}), std::runtime_error);
    EXPECT_THROW(work.finish(), std::runtime_error);
  }
}

TEST(OrderedWork, TellsAgainWhatFailedAtOnce) {
  OrderedWork work(0, 4);
  EXPECT_THROW(work.add([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(work.add([] {}), std::runtime_error);
  EXPECT_THROW(work.add([] {}, [] {}), std::runtime_error);
  EXPECT_THROW(work.finish(), std::runtime_error);
}

TEST(OrderedWork, FinishesWhereItEnds) {
  std::atomic<int> completed = 0;
  {
    OrderedWork work(2, 16);
    for (int item = 0; item < 16; item++)
      work.add([item] { prepare(item); }, [&] { completed++; });
  }
  EXPECT_EQ(completed, 16);
}

// In a process of its own: the limit holds for all of a user's.
TEST(OrderedWork, DoesWithoutThreads) {
  EXPECT_EXIT(
      {
        const rlimit none = {};
        setrlimit(RLIMIT_AS, &none); // no stack for a thread
        int completed = 0;
        OrderedWork work(2, 4);
        for (int item = 0; item < 10; item++)
          work.add([] {}, [&] { completed++; });
        work.finish();
        _exit(completed == 10 ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

} // namespace
