// The rate of the counter is right wherever the thread loses its cpu while it is measured.
#include "runtime/core/system/counter_rate.h"

#include <gtest/gtest.h>

#include <random>

namespace {

constexpr uint64_t kKhz = 2595123, kReadNs = 60;

// A thread that takes kReadNs for each reading of a clock, and longer where it loses its cpu.
class Machine {
public:
  template <typename LosesCpu> uint64_t measured(LosesCpu loses_cpu) {
    auto read = [&] {
      now_ += kReadNs / 2;
      const uint64_t seen = now_;
      now_ += kReadNs / 2 + loses_cpu();
      return seen;
    };
    return assay::measured_khz(read, [&] { return read() * kKhz / 1000000; });
  }

private:
  uint64_t now_ = 1000000000;
};

void expect_exact(uint64_t khz) {
  EXPECT_NEAR((double)khz, kKhz, kKhz / 1000);
}

TEST(CounterRate, OfAThreadThatKeepsItsCpu) {
  expect_exact(Machine().measured([] { return 0; }));
}

TEST(CounterRate, OfAThreadThatLosesItsCpuOnceAtAnyReading) {
  for (uint64_t lost : {20000ULL, 600000ULL, 4000000ULL, 3600000000000ULL})
    for (int at = 0; at < 120; at++) {
      SCOPED_TRACE(testing::Message() << "for " << lost << " ns at reading " << at);
      int reading = 0;
      expect_exact(Machine().measured([&] { return reading++ == at ? lost : 0; }));
    }
}

TEST(CounterRate, OfAThreadThatLosesItsCpuAgainAndAgain) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; i++)
    expect_exact(
        Machine().measured([&]() -> uint64_t { return random() % 4 ? 0 : random() % 5000000; }));
}

TEST(CounterRate, EndsWhereEveryReadingIsLate) {
  EXPECT_GT(Machine().measured([] { return 1000000; }), kKhz / 2);
}

} // namespace
