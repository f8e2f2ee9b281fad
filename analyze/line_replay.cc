// Replaying what was recorded.
//
// Batches of up to eight snapshots are opened at their first one and looked at as groups of 64 recorded
// lines; owners change when a run of owned lines says so. Lines are folded here, below every analysis:
// none of them knows of which size the recorded ones were. Folding while the batches are decoded was
// refused: the owner of a folded line is known only line by line.

#include "analyze/line_replay.h"

#include <algorithm>
#include <map>

namespace analyze {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

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

} // namespace

LineReplay::LineReplay(const profile::WorkingSet &set, LineOwners &owners, uint64_t fold)
    : set_(set), owners_(owners), fold_(fold) {}

void LineReplay::run(const std::function<void(const TouchedGroup &)> &f) {
  uint64_t group_bytes = uint64_t{ASSAY_GROUP_LINES} * set_.line_bytes; // a page, or half of one
  for (uint32_t snapshot = 0; snapshot < set_.snapshots.size(); snapshot++) {
    open_batches(snapshot);
    apply_owners(snapshot);
    std::map<uint64_t, uint64_t> recorded;
    for (const Batch &batch : open_)
      for (const auto &[group, planes] : batch.groups)
        if (uint64_t plane = planes[snapshot - batch.first])
          recorded[group] |= plane;
    TouchedGroup out;
    out.snapshot = snapshot;
    Votes votes;
    uint64_t line = UINT64_MAX, page = UINT64_MAX, pages = 0; // that are being looked at
    auto end_line = [&] {
      if (line == UINT64_MAX)
        return;
      if (out.lines && out.group != line / ASSAY_GROUP_LINES) {
        f(out);
        out.lines = 0;
      }
      out.group = line / ASSAY_GROUP_LINES;
      out.lines |= 1ULL << line % ASSAY_GROUP_LINES;
      out.owners[line % ASSAY_GROUP_LINES] = votes.take();
    };
    for (auto [group, touched] : recorded) {
      OwnersOfGroup &known = owners_of(group);
      pages += group * group_bytes / 4096 != page;
      page = group * group_bytes / 4096;
      each_line(touched, [&, group = group](unsigned each) {
        uint64_t folded = (group * ASSAY_GROUP_LINES + each) / fold_;
        if (folded != line)
          end_line();
        line = folded;
        votes.add(owner(group, each, known));
      });
    }
    end_line();
    if (out.lines)
      f(out);
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

// Runs come in the order of their snapshots.
void LineReplay::apply_owners(uint32_t snapshot) {
  for (; next_owned_ < set_.owned.size() && set_.owned[next_owned_].snapshot <= snapshot;
       next_owned_++) {
    const profile::OwnedLines &run = set_.owned[next_owned_];
    uint32_t name = owners_.of_site(run.owner);
    for (uint64_t line = run.first; line < run.first + run.count; line++)
      owners_of(line / ASSAY_GROUP_LINES)[line % ASSAY_GROUP_LINES] = name;
  }
}

LineReplay::OwnersOfGroup &LineReplay::owners_of(uint64_t group) {
  auto [known, is_new] = owners_of_.try_emplace(group);
  if (is_new)
    known->second.fill(kNobody);
  return known->second;
}

uint32_t LineReplay::owner(uint64_t group, unsigned line, OwnersOfGroup &known) {
  if (known[line] == kNobody)
    known[line] = owners_.of_address((group * ASSAY_GROUP_LINES + line) * set_.line_bytes);
  return known[line];
}

} // namespace analyze
