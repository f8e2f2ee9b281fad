// Loops made at random, told at once and run turn by turn.

#include "trace/steady_loop.h"

#include "tests/unit/trace/uops.h"

#include <gtest/gtest.h>

#include <random>

namespace trace {
namespace {

constexpr unsigned kCondition = ASSAY_REG_TEMPORARIES;
constexpr unsigned kDerived = ASSAY_REG_R8;

struct Loop {
  std::vector<RunnableStep> steps;
  SteadyLoop::End end;
  SkeletonVariables begin{};
};

RunnableStep access(bool write, uint16_t size, uint32_t site, const assay_uop &uop) {
  return {{SkeletonStep::Kind::access, write, size, 0, uop}, site};
}
RunnableStep computation(const assay_uop &uop) {
  return {{SkeletonStep::Kind::compute, false, 0, 0, uop}, 0};
}

class Maker {
public:
  explicit Maker(unsigned seed) : random_(seed) {}

  Loop make() {
    Loop loop;
    const unsigned counters = 1 + number(3);
    for (unsigned c = 0; c < counters; c++) {
      const unsigned width = number(2) ? 8 : 4;
      loop.begin[c] = start(width);
      steps_.push_back(constant(number(4) ? ASSAY_UOP_add : ASSAY_UOP_sub, c, c,
                                1 + static_cast<int64_t>(number(9)), width));
    }
    // Addresses of 4 bytes alone are none: they wrap.
    unsigned whole = 0;
    while (whole < counters && steps_[whole].uop.width == 4)
      whole++;
    if (whole < counters) {
      RunnableStep lea = constant(ASSAY_UOP_lea, kDerived, whole, 0, 8);
      lea.uop.b = static_cast<uint16_t>(whole);
      lea.uop.c = ASSAY_REG_ZERO;
      lea.uop.shift = 3;
      lea.uop.i = -5;
      insert(lea);
      for (unsigned i = number(3); i-- > 0;)
        insert(access(number(2) == 0, 4, i, constant(ASSAY_UOP_load, 0, whole, 16, 4).uop));
      steps_.push_back(access(true, 8, 7, constant(ASSAY_UOP_load, 0, kDerived, 0, 8).uop));
    }
    loop.end.variable = static_cast<uint16_t>(number(counters));
    loop.end.is_count = number(5) == 0;
    if (loop.end.is_count)
      loop.begin[kLoopEnd] = loop.begin[loop.end.variable] + number(400);
    else
      compare(loop.end);
    loop.steps = steps_;
    return loop;
  }

private:
  static RunnableStep constant(unsigned op, unsigned dst, unsigned a, int64_t imm, unsigned width) {
    return computation(uop(op, dst, a, imm, width));
  }
  unsigned number(unsigned below) { return static_cast<unsigned>(random_() % below); }
  // Also close to where numbers wrap, and with upper halves that 4 bytes do not show.
  uint64_t start(unsigned width) {
    const uint64_t near[] = {0, 1000, uint64_t{1} << (8 * width - 1), 0 - uint64_t{200}};
    return near[number(4)] + number(300) - 100;
  }
  void insert(const RunnableStep &step) {
    steps_.insert(steps_.begin() + number(static_cast<unsigned>(steps_.size() + 1)), step);
  }
  void compare(SteadyLoop::End &end) {
    const unsigned variable = end.variable, width = number(2) ? 8 : 4;
    const unsigned flags[] = {ASSAY_UOP_flags_sub, ASSAY_UOP_flags_sub, ASSAY_UOP_flags_add,
                              ASSAY_UOP_flags_dec, ASSAY_UOP_flags_inc, ASSAY_UOP_flags_and};
    RunnableStep made = constant(flags[number(6)], ASSAY_REG_FLAGS, variable,
                                 static_cast<int64_t>(start(width)), width);
    if (made.uop.op == ASSAY_UOP_flags_dec || made.uop.op == ASSAY_UOP_flags_inc) {
      made.uop.b = ASSAY_REG_FLAGS;
      made.uop.c = ASSAY_REG_ZERO;
      made.uop.shift = 0;
      made.uop.i = 0;
    }
    insert(made);
    end.variable = kCondition;
    end.while_set = number(2) == 0;
    steps_.push_back(constant(ASSAY_UOP_if_o + number(16), kCondition, ASSAY_REG_FLAGS, 0, 8));
  }

  std::mt19937 random_;
  std::vector<RunnableStep> steps_;
};

bool goes_on(const SteadyLoop::End &end, const SkeletonVariables &v) {
  return end.is_count ? v[end.variable] != v[kLoopEnd] : (v[end.variable] != 0) == end.while_set;
}

// Whether another turn follows.
bool run_turn(const Loop &loop, SkeletonVariables &v, std::vector<uint64_t> &addresses) {
  for (const RunnableStep &step : loop.steps)
    if (step.is_access())
      addresses.push_back(step.address(v));
    else
      step.compute(v);
  return goes_on(loop.end, v);
}

TEST(SteadyLoop, TellsWhatTurnsDo) {
  unsigned found = 0, long_ones = 0;
  for (unsigned seed = 0; seed < 20'000; seed++) {
    const Loop loop = Maker(seed).make();
    const auto steady = SteadyLoop::of(loop.steps, loop.end);
    if (!steady)
      continue;
    found++;
    const SteadyLoop::Iterations iterations = steady->iterations(loop.begin);
    long_ones += iterations.count > 20;
    const uint64_t checked = std::min<uint64_t>(iterations.count, 2000);
    SkeletonVariables v = loop.begin;
    std::vector<uint64_t> addresses, told;
    for (uint64_t turn = 0; turn < checked; turn++) {
      ASSERT_TRUE(run_turn(loop, v, addresses)) << seed << ": ends in turn " << turn;
      for (const profile::AccessRun &each : iterations.body)
        told.push_back(each.first.address + turn * each.step);
    }
    ASSERT_EQ(addresses, told) << seed;
    SkeletonVariables after = loop.begin;
    for (const SteadyLoop::Step &step : iterations.steps)
      step.go(checked, after);
    std::vector<uint64_t> next, next_told;
    ASSERT_EQ(run_turn(loop, v, next), run_turn(loop, after, next_told)) << seed;
    ASSERT_EQ(next, next_told) << seed;
    EXPECT_EQ(v, after) << seed;
  }
  EXPECT_GT(found, 4000U);
  EXPECT_GT(long_ones, 1000U);
}

// As a compiler writes it: all iterations but the last are told.
TEST(SteadyLoop, TellsAllTurnsOfACountedLoop) {
  const std::vector<RunnableStep> steps = {
      access(true, 4, 0, uop(ASSAY_UOP_store, 0, ASSAY_REG_RAX, 8)),
      computation(uop(ASSAY_UOP_add, ASSAY_REG_RAX, ASSAY_REG_RAX, 4)),
      computation(uop(ASSAY_UOP_flags_sub, ASSAY_REG_FLAGS, ASSAY_REG_RAX, 4000)),
      computation(uop(ASSAY_UOP_if_b, kCondition, ASSAY_REG_FLAGS, 0))};
  const auto steady = SteadyLoop::of(steps, {false, true, kCondition});
  ASSERT_TRUE(steady);
  const SteadyLoop::Iterations iterations = steady->iterations({});
  EXPECT_EQ(iterations.count, 999U);
  ASSERT_EQ(iterations.body.size(), 1U);
  EXPECT_EQ(iterations.body[0].first.address, 8U);
  EXPECT_EQ(iterations.body[0].step, 4U);
}

} // namespace
} // namespace trace
