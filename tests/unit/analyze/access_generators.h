// Accesses of known shapes, for tests of what takes them.
#pragma once

#include "profile/access_stream.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace test {

using Accesses = std::vector<profile::Access>;

// Lines of 64 bytes: a loop over `lines` of them, again and again.
inline Accesses loop(uint64_t lines, size_t touches) {
  Accesses all;
  for (size_t i = 0; i < touches; i++)
    all.push_back({(1000 + i % lines) * 64, 0, 8, false});
  return all;
}

// The k-th line is touched in proportion to k^-exponent; places in memory have nothing to do with ranks.
inline Accesses zipf(uint64_t lines, double exponent, size_t touches, uint64_t seed) {
  std::vector<double> sums;
  double sum = 0;
  for (uint64_t k = 1; k <= lines; k++)
    sums.push_back(sum += std::pow(double(k), -exponent));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, sum);
  Accesses all;
  for (size_t i = 0; i < touches; i++) {
    const auto rank = static_cast<uint64_t>(
        std::lower_bound(sums.begin(), sums.end(), uniform(random)) - sums.begin());
    all.push_back({(rank * 7919 % lines) * 64, 1, 8, false});
  }
  return all;
}

// Pieces of both, in turns: of each so many accesses at a time.
inline Accesses mixture(const Accesses &a, const Accesses &b, size_t at_a_time) {
  Accesses all;
  for (size_t at = 0; at < std::max(a.size(), b.size()); at += at_a_time)
    for (const Accesses *each : {&a, &b})
      for (size_t i = at; i < std::min(at + at_a_time, each->size()); i++)
        all.push_back((*each)[i]);
  return all;
}

// What real programs do, roughly: a stack, sweeps, and random places, of all sizes, some across the
// borders of lines and pages.
inline Accesses program_like(size_t touches, uint64_t seed) {
  std::mt19937_64 random(seed);
  Accesses all;
  uint64_t sweep = 1 << 20;
  while (all.size() < touches) {
    const auto size = static_cast<uint16_t>(1 << random() % 7);
    const bool is_write = random() % 3 == 0;
    switch (random() % 8) {
    case 0: all.push_back({random() % (8 << 20), 2, size, is_write}); break;
    case 1: all.push_back({(random() % 64) * 4096 + 60, 3, size, is_write}); break;
    case 2:
    case 3: all.push_back({sweep += 72, 4, size, is_write}); break;
    default: all.push_back({(1 << 26) + random() % 4096, 5, size, is_write}); break;
    }
    if (random() % 4096 == 0)
      sweep = (1 << 20) + random() % 4096;
  }
  return all;
}

} // namespace test
