// Replaying what was recorded.
//
// Batches of up to eight snapshots are opened at their first one and looked at as groups of 64 recorded
// lines; owners change when a run of owned lines says so. Lines are folded here, below every analysis:
// none of them knows of which size the recorded ones were. Folding while the batches are decoded was
// refused: the owner of a folded line is known only line by line.

#include "analyze/line_replay.h"

#include "abi/shadow.h"

#include <algorithm>

namespace analyze {
namespace {

// How many touched lines of one folded line each owner has, in the order in which they are met.
class Votes {
public:
  void add(uint32_t owner) {
    for (auto &[known, count] : counts_)
      if (known == owner) {
        count++;
        return;
      }
    counts_.emplace_back(owner, 1);
  }
  // The owner with the most, of several the first; the votes are gone then.
  uint32_t take() {
    auto most = std::max_element(counts_.begin(), counts_.end(),
                                 [](auto &a, auto &b) { return a.second < b.second; });
    uint32_t owner = most->first;
    counts_.clear();
    return owner;
  }

private:
  std::vector<std::pair<uint32_t, uint64_t>> counts_;
};

// Joins the lines of one snapshot, which come in ascending order.
class Folding {
public:
  Folding(uint64_t fold, const std::function<void(const TouchedGroup &)> &f) : fold_(fold), f_(f) {}

  void add(const TouchedGroup &recorded) {
    if (fold_ == 1)
      return f_(recorded);
    out_.snapshot = recorded.snapshot;
    uint64_t begin = recorded.group * ASSAY_GROUP_LINES;
    each_line(recorded.lines, [&](unsigned line) {
      if (uint64_t folded = (begin + line) / fold_; folded != line_) {
        end_line();
        line_ = folded;
      }
      votes_.add(recorded.owners[line]);
    });
  }
  void end() {
    end_line();
    if (out_.lines)
      f_(out_);
  }

private:
  void end_line() {
    if (line_ == kNone)
      return;
    if (uint64_t group = line_ / ASSAY_GROUP_LINES; group != out_.group) {
      if (out_.lines)
        f_(out_);
      out_.group = group;
      out_.lines = 0;
    }
    out_.lines |= 1ULL << line_ % ASSAY_GROUP_LINES;
    out_.owners[line_ % ASSAY_GROUP_LINES] = votes_.take();
  }

  static constexpr uint64_t kNone = UINT64_MAX;
  uint64_t fold_;
  const std::function<void(const TouchedGroup &)> &f_;
  uint64_t line_ = kNone; // whose parts are counted
  Votes votes_;
  TouchedGroup out_;
};

} // namespace

LineReplay::LineReplay(const profile::WorkingSet &set, OwnerFinder &owners, uint64_t fold)
    : set_(set), owners_(owners), fold_(fold) {}

void LineReplay::run(const std::function<void(const TouchedGroup &)> &f) {
  uint64_t group_bytes = uint64_t{ASSAY_GROUP_LINES} * set_.line_bytes; // a page, or half of one
  for (uint32_t snapshot = 0; snapshot < set_.snapshots.size(); snapshot++) {
    open_batches(snapshot);
    apply_owners(snapshot);
    gather_recorded(snapshot);
    uint64_t page = UINT64_MAX, pages = 0;
    Folding folding(fold_, f);
    TouchedGroup touched;
    touched.snapshot = snapshot;
    for (auto [group, lines] : recorded_) {
      pages += group * group_bytes / ASSAY_PAGE_BYTES != page;
      page = group * group_bytes / ASSAY_PAGE_BYTES;
      touched.group = group;
      touched.lines = lines;
      touched.owners = owners_of(group, lines);
      folding.add(touched);
    }
    folding.end();
    pages_.push_back(pages);
  }
}

// Those that speak of this snapshot; they come by their first one.
void LineReplay::open_batches(uint32_t snapshot) {
  std::erase_if(open_, [&](const Batch &batch) { return batch.end <= snapshot; });
  for (; next_lines_ < set_.lines.size() && set_.lines[next_lines_].first <= snapshot;
       next_lines_++) {
    const profile::TouchedLines &lines = set_.lines[next_lines_];
    Batch batch{lines.first, lines.first + lines.count, {}};
    profile::each_group(lines, [&](uint64_t group, const uint64_t *planes) {
      auto &copy = batch.groups.emplace_back(group, std::array<uint64_t, 8>()).second;
      std::copy(planes, planes + lines.count, copy.begin());
    });
    open_.push_back(std::move(batch));
  }
}

// Those of one batch are in order; those of several are put in order, and what two have becomes one.
void LineReplay::gather_recorded(uint32_t snapshot) {
  recorded_.clear();
  for (const Batch &batch : open_)
    for (const auto &[group, planes] : batch.groups)
      if (uint64_t plane = planes[snapshot - batch.first])
        recorded_.emplace_back(group, plane);
  if (!std::is_sorted(recorded_.begin(), recorded_.end()))
    std::sort(recorded_.begin(), recorded_.end());
  size_t kept = 0;
  for (auto [group, lines] : recorded_)
    if (kept && recorded_[kept - 1].first == group)
      recorded_[kept - 1].second |= lines;
    else
      recorded_[kept++] = {group, lines};
  recorded_.resize(kept);
}

// Runs come in the order of their snapshots.
void LineReplay::apply_owners(uint32_t snapshot) {
  for (; next_owned_ < set_.owned.size() && set_.owned[next_owned_].snapshot <= snapshot;
       next_owned_++) {
    const profile::OwnershipChange &run = set_.owned[next_owned_];
    uint32_t name = owners_.of_site(run.owner);
    for (uint64_t line = run.first; line < run.first + run.count; line++) {
      Owners &owners = owners_of_[line / ASSAY_GROUP_LINES];
      owners.names[line % ASSAY_GROUP_LINES] = name;
      owners.known |= 1ULL << line % ASSAY_GROUP_LINES;
    }
  }
}

// Known for these lines at least.
const NumberOfLine &LineReplay::owners_of(uint64_t group, uint64_t lines) {
  Owners &owners = owners_of_[group];
  each_line(lines & ~owners.known, [&](unsigned line) {
    uint64_t address = (group * ASSAY_GROUP_LINES + line) * set_.line_bytes;
    owners.names[line] = owners_.of_address(address);
  });
  owners.known |= lines;
  return owners.names;
}

} // namespace analyze
