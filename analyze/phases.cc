// By owners and not by lines: a program that streams through an array touches other lines in each
// snapshot, and is in one phase all the same.
//
// Two snapshots are alike as the lines that each owner has in both (the smaller of its two numbers),
// divided by those that it has in either (the larger). A snapshot is compared with the mean of the phase
// so far. One that is alone between two phases is where the one ends and the other begins; it goes to
// the one that it is more like.

#include "analyze/phases.h"

#include <algorithm>
#include <unordered_map>

namespace analyze {
namespace {

constexpr double kAlike = 0.5;
constexpr uint64_t kNoise = 16; // lines that make no difference

using Lines = std::unordered_map<uint32_t, double>; // owner -> lines

Lines lines_of(const SnapshotRow &row) {
  Lines lines;
  for (const OwnerLines &owner : row.owners)
    lines[owner.owner] = double(owner.lines);
  return lines;
}

double likeness(const Lines &a, const Lines &b) {
  double both = kNoise, either = kNoise;
  for (auto [owner, lines] : a) {
    auto other = b.find(owner);
    double there = other == b.end() ? 0 : other->second;
    both += std::min(lines, there);
    either += std::max(lines, there);
  }
  for (auto [owner, lines] : b)
    if (!a.count(owner))
      either += lines;
  return both / either;
}

struct Stretch {
  size_t first, last;
  Lines mean;
  size_t size() const { return last - first + 1; }
};

Stretch joined(const Stretch &a, const Stretch &b) {
  Stretch sum{a.first, b.last, {}};
  double n = double(a.size()), m = double(b.size());
  for (auto [owner, lines] : a.mean)
    sum.mean[owner] += lines * n / (n + m);
  for (auto [owner, lines] : b.mean)
    sum.mean[owner] += lines * m / (n + m);
  return sum;
}

} // namespace

std::vector<Phase> find_phases(const std::vector<SnapshotRow> &snapshots) {
  std::vector<Stretch> stretches;
  for (size_t i = 0; i < snapshots.size(); i++) {
    Stretch one{i, i, lines_of(snapshots[i])};
    if (!stretches.empty() && likeness(stretches.back().mean, one.mean) >= kAlike)
      stretches.back() = joined(stretches.back(), one);
    else
      stretches.push_back(std::move(one));
  }
  // Single snapshots go to a neighbour, unless most of the run is such.
  for (size_t i = 0; i < stretches.size() && stretches.size() > 1;) {
    bool has_before = i > 0 && stretches[i - 1].size() > 1;
    bool has_after = i + 1 < stretches.size() && stretches[i + 1].size() > 1;
    if (stretches[i].size() > 1 || !(has_before || has_after)) {
      i++;
      continue;
    }
    double before = has_before ? likeness(stretches[i - 1].mean, stretches[i].mean) : -1;
    double after = has_after ? likeness(stretches[i + 1].mean, stretches[i].mean) : -1;
    size_t into = after > before ? i : i - 1;
    bool keep_mean_of_second = into == i; // the single one is first
    Lines mean = stretches[keep_mean_of_second ? into + 1 : into].mean;
    stretches[into] = joined(stretches[into], stretches[into + 1]);
    stretches[into].mean = std::move(mean);
    stretches.erase(stretches.begin() + static_cast<ptrdiff_t>(into) + 1);
    i = into + 1;
  }
  // What the single ones kept apart may be one.
  std::vector<Phase> phases;
  std::vector<Stretch> merged;
  for (Stretch &stretch : stretches)
    if (!merged.empty() && likeness(merged.back().mean, stretch.mean) >= kAlike)
      merged.back() = joined(merged.back(), stretch);
    else
      merged.push_back(std::move(stretch));
  for (const Stretch &stretch : merged) {
    Phase phase;
    phase.first = stretch.first;
    phase.last = stretch.last;
    phases.push_back(std::move(phase));
  }
  return phases;
}

} // namespace analyze
