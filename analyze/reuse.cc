// One pass, with a number for each line (its last snapshot, which the caller keeps) and one for each
// snapshot. A line is new in the period of 2^k snapshots if its last touch was in another one, that is if
// the two snapshots differ above their lowest k bits.

#include "analyze/reuse.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace analyze {

Reuse::Reuse(std::vector<uint64_t> lengths)
    : lengths_(std::move(lengths)), last_(lengths_.size()), came_back_(lengths_.size()) {
  for (size_t period = 1;; period *= 2) {
    fresh_.emplace_back((lengths_.size() + period - 1) / period);
    if (period >= lengths_.size())
      break;
  }
}

void Reuse::touch(size_t last, uint64_t lines) {
  if (last == kNever)
    new_ += lines;
  else
    came_back_[last] += lines;
}

void Reuse::end_snapshot() {
  uint64_t now = std::accumulate(came_back_.begin(), came_back_.end(), new_);
  for (size_t level = 0; level < fresh_.size(); level++)
    fresh_[level][snapshot_ >> level] += new_;
  uint64_t since = 0;    // distinct lines of the snapshots from the next one on, before this one
  uint64_t also_now = 0; // lines of this snapshot that are among them
  for (size_t last = snapshot_; last-- > 0;) {
    uint64_t lines = came_back_[last];
    uint64_t since_last = since + last_[last];
    if (lines) {
      also_now += lines;
      least_needed_[since + 1] += lines;
      most_needed_[since_last + now - also_now] += lines;
      auto levels = static_cast<size_t>(std::bit_width(last ^ snapshot_));
      for (size_t level = 0; level < std::min(levels, fresh_.size()); level++)
        fresh_[level][snapshot_ >> level] += lines;
    }
    since = since_last;
  }
  for (size_t last = 0; last < snapshot_; last++)
    last_[last] -= std::exchange(came_back_[last], 0);
  last_[snapshot_] = now;
  total_ += std::exchange(new_, 0);
  snapshot_++;
}

std::vector<PeriodRow> Reuse::periods() const {
  std::vector<PeriodRow> rows;
  for (size_t level = 0; level < fresh_.size(); level++) {
    const std::vector<uint64_t> &lines = fresh_[level];
    PeriodRow row;
    row.snapshots = std::min(size_t{1} << level, lengths_.size());
    row.most_lines = *std::max_element(lines.begin(), lines.end());
    double weights = 0;
    for (size_t i = 0; i < lengths_.size(); i++) {
      double weight = double(std::max<uint64_t>(lengths_[i], 1));
      row.mean_lines += double(lines[i >> level]) * weight;
      row.length += double(lengths_[i]) * double(row.snapshots) / double(lengths_.size());
      weights += weight;
    }
    row.mean_lines /= weights;
    rows.push_back(row);
  }
  return rows;
}

Misses Reuse::misses(uint64_t lines) const {
  auto beyond = [&](const std::map<uint64_t, uint64_t> &needed) {
    uint64_t sum = total_;
    for (auto more = needed.upper_bound(lines); more != needed.end(); ++more)
      sum += more->second;
    return sum;
  };
  return {beyond(least_needed_), beyond(most_needed_)};
}

} // namespace analyze
