// By owners and not by lines: a program that streams through an array touches other lines in each
// snapshot, and is in one phase all the same.
//
// Two snapshots are alike as the lines that each owner has in both (the smaller of its two numbers),
// divided by those that it has in either (the larger). A snapshot is compared with the mean of the phase
// so far. One that is alone between two phases is where the one ends and the other begins; it goes to
// the one that it is more like, as a border: what is said of the phase is not of it. Nor is it of
// snapshots in which nothing was touched (the program waited): they belong to the phase before.

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
  for (const OwnerCount &owner : row.owners)
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
  size_t size; // snapshots in which something was touched
  Lines mean;
  std::vector<size_t> borders; // that went to it though they are unlike it
};

Stretch joined(const Stretch &a, const Stretch &b) {
  Stretch sum{a.first, b.last, a.size + b.size, {}, a.borders};
  sum.borders.insert(sum.borders.end(), b.borders.begin(), b.borders.end());
  double n = double(a.size), m = double(b.size);
  for (auto [owner, lines] : a.mean)
    sum.mean[owner] += lines * n / (n + m);
  for (auto [owner, lines] : b.mean)
    sum.mean[owner] += lines * m / (n + m);
  return sum;
}

// Neighbours that are alike become one, each compared with the mean of what came before it.
std::vector<Stretch> join_alike(std::vector<Stretch> stretches) {
  std::vector<Stretch> joined_ones;
  for (Stretch &stretch : stretches)
    if (!joined_ones.empty() && likeness(joined_ones.back().mean, stretch.mean) >= kAlike)
      joined_ones.back() = joined(joined_ones.back(), stretch);
    else
      joined_ones.push_back(std::move(stretch));
  return joined_ones;
}

// Single snapshots go to a neighbour and leave its mean as it is, unless most of the run is such.
void absorb_single_ones(std::vector<Stretch> &stretches) {
  for (size_t i = 0; i < stretches.size();) {
    bool has_before = i > 0 && stretches[i - 1].size > 1;
    bool has_after = i + 1 < stretches.size() && stretches[i + 1].size > 1;
    if (stretches[i].size > 1 || !(has_before || has_after)) {
      i++;
      continue;
    }
    double before = has_before ? likeness(stretches[i - 1].mean, stretches[i].mean) : -1;
    double after = has_after ? likeness(stretches[i + 1].mean, stretches[i].mean) : -1;
    size_t neighbour = after > before ? i + 1 : i - 1, first = std::min(i, neighbour);
    stretches[neighbour].borders.push_back(stretches[i].first);
    stretches[neighbour].size++;
    stretches[neighbour].first = stretches[first].first;
    stretches[neighbour].last = stretches[first + 1].last;
    if (neighbour != first)
      stretches[first] = std::move(stretches[neighbour]);
    stretches.erase(stretches.begin() + static_cast<ptrdiff_t>(first) + 1);
    i = first + 1;
  }
}

} // namespace

std::vector<Phase> find_phases(const std::vector<SnapshotRow> &snapshots) {
  std::vector<Stretch> stretches;
  stretches.reserve(snapshots.size());
  for (size_t i = 0; i < snapshots.size(); i++)
    if (snapshots[i].lines)
      stretches.push_back({i, i, 1, lines_of(snapshots[i]), {}});
  stretches = join_alike(std::move(stretches));
  absorb_single_ones(stretches);
  stretches = join_alike(std::move(stretches)); // single ones kept some apart
  if (stretches.empty() && !snapshots.empty())
    stretches.push_back({0, 0, 0, {}, {}});
  std::vector<Phase> phases;
  for (size_t i = 0; i < stretches.size(); i++) {
    Phase phase;
    phase.first = i == 0 ? 0 : stretches[i].first;
    phase.last = i + 1 < stretches.size() ? stretches[i + 1].first - 1 : snapshots.size() - 1;
    phase.left_out = stretches[i].borders;
    for (size_t snapshot = phase.first; snapshot <= phase.last; snapshot++)
      if (!snapshots[snapshot].lines)
        phase.left_out.push_back(snapshot);
    std::sort(phase.left_out.begin(), phase.left_out.end());
    phases.push_back(std::move(phase));
  }
  return phases;
}

} // namespace analyze
