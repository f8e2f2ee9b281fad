// Random skeletons: what runs at once, what runs byte by byte, and the micro-ops as they stand give
// the same accesses.

#include "abi/uop_step.h"
#include "tests/unit/trace/uops.h"
#include "trace/skeleton_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace trace {
namespace {

using Kind = SkeletonStep::Kind;
using End = SkeletonBlock::End;

constexpr unsigned kRegisters = 6; // that are used: the first ones

class Maker {
public:
  explicit Maker(unsigned seed) : random_(seed) {}

  // One block, that is gone through again and again.
  Skeleton make() {
    Skeleton skeleton;
    SkeletonBlock &block = skeleton.blocks.emplace_back();
    for (unsigned steps = 4 + number(20); steps-- > 0;)
      block.steps.push_back(step());
    block.steps.push_back(access());
    block.end = number(4) ? End::logged : End::choose;
    block.next = {0, SkeletonBlock::kOut};
    return skeleton;
  }
  // What `times` times through it take, and leave it then.
  std::vector<std::byte> logged(const Skeleton &skeleton, unsigned times) {
    std::vector<std::byte> bytes;
    const SkeletonBlock &block = skeleton.blocks.front();
    for (unsigned i = 0; i < times; i++) {
      for (const SkeletonStep &step : block.steps)
        for (unsigned b = 0; step.kind == Kind::in && b < step.size; b++)
          bytes.push_back(std::byte(number(256)));
      const bool is_last = i + 1 == times;
      bytes.push_back(std::byte(block.end == End::logged ? !is_last : is_last));
      if (block.end == End::choose)
        bytes.push_back(std::byte{0});
    }
    return bytes;
  }
  unsigned number(unsigned below) { return static_cast<unsigned>(random_() % below); }

private:
  SkeletonStep step() {
    switch (number(5)) {
    case 0: {
      SkeletonStep in = {Kind::in, false, static_cast<uint16_t>(1 << number(4)), 0, {}};
      in.uop.dst = reg();
      return in;
    }
    case 1: return access();
    default: return {Kind::compute, false, 0, 0, computation()};
    }
  }
  SkeletonStep access() {
    return {Kind::access, number(2) == 0, 8, 0x1000 + number(16), operands(ASSAY_UOP_load)};
  }
  assay_uop computation() {
    constexpr unsigned kFrequent[] = {ASSAY_UOP_copy, ASSAY_UOP_add, ASSAY_UOP_sub, ASSAY_UOP_lea,
                                      ASSAY_UOP_sign_extend};
    unsigned op = kFrequent[number(5)];
    while (number(3) == 0 || !is_computed(op))
      op = number(ASSAY_UOP_COUNT);
    assay_uop uop = operands(op);
    uop.width = static_cast<uint8_t>(1 << number(4));
    uop.dst = reg();
    if (op == ASSAY_UOP_sign_extend)
      uop.i = static_cast<int32_t>(number(64));
    return uop;
  }
  static bool is_computed(unsigned op) {
    return assay_uop_is_value(op) && !assay_uop_is_lane(op) && !assay_uop_reads_modes(op);
  }
  assay_uop operands(unsigned op) {
    const bool sums =
        op == ASSAY_UOP_lea || op == ASSAY_UOP_sign_extend; // they have no constant as such
    if (!sums && number(2))
      return uop(op, 0, reg(), static_cast<int64_t>(random_() >> number(64)));
    assay_uop uop = {};
    uop.op = static_cast<uint8_t>(op);
    uop.a = reg();
    uop.b = number(2) ? uint16_t{ASSAY_REG_ZERO} : reg();
    uop.c = number(2) ? uint16_t{ASSAY_REG_ZERO} : reg();
    uop.shift = static_cast<uint8_t>(number(4));
    uop.i = static_cast<int32_t>(number(1000)) - 500;
    return uop;
  }
  uint16_t reg() { return static_cast<uint16_t>(ASSAY_REG_RAX + number(kRegisters)); }

  std::mt19937_64 random_;
};

std::vector<uint64_t> as_they_stand(const Skeleton &skeleton, std::span<const std::byte> logged) {
  std::vector<uint64_t> addresses;
  SkeletonVariables v{};
  const SkeletonBlock &block = skeleton.blocks.front();
  while (!logged.empty()) {
    for (const SkeletonStep &step : block.steps) {
      const bool constant = step.uop.b == ASSAY_UOP_IMMEDIATE;
      const uint64_t a = v[step.uop.a], b = constant ? uint64_t(step.uop.imm) : v[step.uop.b],
                     c = constant ? 0 : v[step.uop.c];
      if (step.kind == Kind::in) {
        uint64_t value = 0;
        std::memcpy(&value, logged.data(), step.size);
        logged = logged.subspan(step.size);
        v[step.uop.dst] = value;
      } else if (step.kind == Kind::compute)
        v[step.uop.dst] = assay_uop_value(&step.uop, a, b, c);
      else
        addresses.push_back(
            constant ? a + b : a + (b << step.uop.shift) + c + uint64_t(int64_t{step.uop.i}));
    }
    logged = logged.subspan(block.end == End::logged ? 1 : 2);
  }
  return addresses;
}

TEST(SkeletonRun, AtOnceAndByteByByte) {
  for (unsigned seed = 0; seed < 3000; seed++) {
    Maker maker(seed);
    const Skeleton skeleton = maker.make();
    const unsigned times = 1 + maker.number(20);
    const std::vector<std::byte> logged = maker.logged(skeleton, times);
    const std::vector<uint64_t> expected = as_they_stand(skeleton, logged);
    std::vector<profile::AccessSite> sites;
    const RunnableSkeleton runnable(skeleton, 1, sites);
    for (const uint64_t most : {uint64_t{1}, uint64_t{7}, uint64_t{logged.size()}}) {
      std::vector<uint64_t> addresses;
      AccessOutput output([&](auto batch) {
        for (const profile::Access &each : batch)
          addresses.push_back(each.address);
      });
      SkeletonPosition position;
      position.skeleton = &runnable;
      std::vector<std::byte> given; // and not yet taken
      for (size_t at = 0; at < logged.size(); at += most) {
        const auto part = std::span(logged).subspan(at, std::min<size_t>(most, logged.size() - at));
        given.insert(given.end(), part.begin(), part.end());
        ASSERT_TRUE(position.skeleton) << seed;
        const uint64_t taken = run_skeleton(position, given, false, output);
        given.erase(given.begin(), given.begin() + static_cast<ptrdiff_t>(taken));
      }
      // It waits right behind the last byte that it took; here that was whether it goes on.
      if (position.skeleton)
        run_skeleton(position, given, true, output);
      output.flush();
      ASSERT_FALSE(position.skeleton) << seed;
      ASSERT_EQ(addresses, expected) << "seed " << seed << ", " << most << " bytes at once";
      ASSERT_EQ(position.taken.branches, times) << seed;
    }
  }
}

} // namespace
} // namespace trace
