#include "trace/nests.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

namespace trace {
namespace {

using Line = std::tuple<uint64_t, uint64_t, uint16_t, char>;

// The accesses of a nest, each loop unrolled. `shift`: how far each access of it is beyond the
// first iteration of the loops around.
void unroll(const Nest &nest, std::vector<int64_t> shift, size_t &at, std::vector<Line> &to) {
  if (!nest.is_loop()) {
    to.emplace_back(nest.site, nest.address + static_cast<uint64_t>(shift[at]), nest.size,
                    nest.kind);
    at++;
    return;
  }
  const size_t begin = at;
  for (uint64_t i = 0; i < nest.count; i++) {
    at = begin;
    for (const Nest &part : nest.body)
      unroll(part, shift, at, to);
    for (size_t s = 0; s < nest.strides.size(); s++)
      shift[begin + s] += nest.strides[s];
  }
}

class Folded {
public:
  void push(uint64_t site, uint64_t address, uint16_t size = 8, char kind = 'L') {
    pushed_.emplace_back(site, address, size, kind);
    Nest access;
    access.site = site;
    access.address = address;
    access.size = size;
    access.kind = kind;
    folder_.push(access);
  }
  // What was taken, after a comparison of all accesses.
  const std::vector<Nest> &nests() {
    folder_.flush();
    std::vector<Line> lines;
    for (const Nest &nest : nests_) {
      size_t at = 0;
      unroll(nest, std::vector<int64_t>(10'000, 0), at, lines);
    }
    EXPECT_EQ(lines, pushed_);
    return nests_;
  }

private:
  std::vector<Nest> nests_;
  std::vector<Line> pushed_;
  NestFolder folder_{[this](const Nest &nest) { nests_.push_back(nest); }};
};

TEST(Nests, MatrixProductIsOneNest) {
  Folded folded;
  constexpr uint64_t kN = 9;
  for (uint64_t i = 0; i < kN; i++)
    for (uint64_t j = 0; j < kN; j++) {
      for (uint64_t k = 0; k < kN; k++) {
        folded.push(1, 0x1000 + 8 * (i * kN + k));
        folded.push(2, 0x9000 + 8 * (k * kN + j));
      }
      folded.push(3, 0x20000 + 8 * (i * kN + j), 8, 'S');
    }
  const std::vector<Nest> &nests = folded.nests();
  ASSERT_EQ(nests.size(), 1u);
  EXPECT_EQ(nests[0].count, kN);
  ASSERT_EQ(nests[0].body.size(), 1u);
  EXPECT_EQ(nests[0].body[0].count, kN);
  ASSERT_EQ(nests[0].body[0].body.size(), 2u);
  EXPECT_EQ(nests[0].body[0].body[0].count, kN);
  EXPECT_EQ(nests[0].strides, (std::vector<int64_t>{8 * kN, 0, 8 * kN}));
}

TEST(Nests, GoesDownAndWraps) {
  Folded folded;
  for (uint64_t i = 0; i < 100; i++)
    folded.push(1, 160 - 16 * i);
  ASSERT_EQ(folded.nests().size(), 1u);
}

TEST(Nests, LongBodiesAndTriangles) {
  Folded folded;
  for (uint64_t i = 0; i < 50; i++)
    for (uint64_t j = 0; j < i; j++)
      folded.push(7, 64 * i + j, 1);
  for (uint64_t i = 0; i < 20; i++)
    for (uint64_t site = 0; site < 40; site++)
      folded.push(100 + site, 4096 * site + 4 * i, 4);
  folded.nests();
}

TEST(Nests, WhateverComesIsKept) {
  for (unsigned seed = 0; seed < 300; seed++) {
    std::mt19937 random(seed);
    Folded folded;
    for (int part = 0; part < 40; part++) {
      const unsigned body = 1 + random() % 5, times = random() % 12;
      const uint64_t step = random() % 3 * 8;
      for (unsigned i = 0; i < times; i++)
        for (unsigned site = 0; site < body; site++)
          folded.push(random() % 50 ? site : 9, 1000 * site + step * i, 8,
                      random() % 50 ? 'L' : 'S');
    }
    folded.nests();
  }
}

} // namespace
} // namespace trace
