// A layout costs where its lines have to be brought in, an allocation the time of its calls, memory
// what is held of it: the same share of a tool's own is worth more or less of the run by what other
// tools have measured.

#include "analyze/joined_worth.h"

#include <algorithm>

namespace analyze {
namespace {

constexpr double kAllocationUs = 0.1; // of a call of malloc and of free, and what they displace
constexpr double kCopiedBytesPerUs = 5000; // by realloc
constexpr double kMemoryAlone = 0.5;       // beside time
constexpr double kFitsFirst = 0.1;         // what a better layout saves of what fits into L1
constexpr double kFitsSecond = 0.4;        // the same of L2
constexpr double kFitsThird = 0.5;         // the same of L3
constexpr double kUnknownReach = 0.25;     // of what no tool has seen in memory
constexpr double kLineTransfers = 0.5;     // of threads that write one line in turn
constexpr double kTransferUs = 0.1;        // of a line from one processor's cache to another's

} // namespace

JoinedWorth::JoinedWorth(const JoinedResult &result) : result_(result) {
  for (size_t i = 0; i < result.types.size(); i++)
    types_.emplace(result.types[i].type, i);
  for (size_t i = 0; i < result.sites.size(); i++) {
    sites_.emplace(std::pair(result.sites[i].site, result.sites[i].type), i);
    sites_.emplace(std::pair(result.sites[i].site, ""), i);
  }
}

const JoinedRow *JoinedWorth::site_row(const Subject &about) const {
  auto known = about.site.empty() ? sites_.end() : sites_.find({about.site, about.type});
  if (known == sites_.end() && !about.site.empty())
    known = sites_.find({about.site, ""});
  return known == sites_.end() ? nullptr : &result_.sites[known->second];
}

bool JoinedWorth::has_row(const Subject &about) const {
  if (about.site.empty())
    return type_row(about.type);
  return sites_.contains({about.site, about.type});
}

const JoinedRow *JoinedWorth::type_row(const std::string &type) const {
  auto known = type.empty() ? types_.end() : types_.find(type);
  return known == types_.end() ? nullptr : &result_.types[known->second];
}

std::optional<double> JoinedWorth::bytes_at_a_time(const JoinedRow *row) const {
  if (row && row->set)
    return double(row->set->most_lines * result_.line_bytes);
  if (row && row->heap && result_.from.heap->peak_is_divided)
    return double(row->heap->at_peak_bytes);
  return std::nullopt;
}

int JoinedWorth::cache_of(const JoinedRow *row) const {
  const auto amount = bytes_at_a_time(row);
  if (!amount)
    return 0;
  for (int level = 1; level <= 3; level++)
    if (*amount <= double(cache_bytes(level)))
      return level;
  return 0;
}

// 0 if it is not known: as the working set was asked with, else the machine's.
uint64_t JoinedWorth::cache_bytes(int level) const {
  const std::string name = "L" + std::to_string(level);
  uint64_t bytes = 0;
  if (const auto &machine = result_.process.machine)
    bytes = level == 1 ? machine->l1d_bytes : level == 2 ? machine->l2_bytes : machine->l3_bytes;
  if (!result_.phases.empty())
    for (const CacheFit &cache : result_.phases.front().set->caches)
      if (cache.name == name)
        bytes = cache.bytes;
  return bytes;
}

double JoinedWorth::of(const Finding &finding) const {
  const double weight = std::min(finding.weight, 1.0) * finding.saved_share;
  switch (finding.gain) {
  case Gain::kTime:
  case Gain::kWorkingSet: return weight;
  case Gain::kCalls: return std::min(weight, share_of_run(finding.saves.amount * kAllocationUs));
  case Gain::kCopiedBytes:
    return std::min(weight, share_of_run(finding.saves.amount / kCopiedBytesPerUs));
  case Gain::kMemory:
    return std::min(weight, share_of_peak(site_row(finding.about))) * kMemoryAlone;
  case Gain::kLineTransfers:
    return std::min(kLineTransfers * weight, share_of_run(finding.saves.amount * kTransferUs));
  case Gain::kLineUse: break;
  }
  const JoinedRow *row = type_row(finding.about.type);
  if (!row)
    row = site_row(finding.about);
  const int cache = cache_of(row);
  const double share = weight * (!bytes_at_a_time(row) ? kUnknownReach
                                 : cache == 1          ? kFitsFirst
                                 : cache == 2          ? kFitsSecond
                                 : cache == 3          ? kFitsThird
                                                       : 1);
  return row && row->set ? std::min(share, row->set->time_share) : share;
}

double JoinedWorth::share_of_run(double us) const {
  const uint64_t run_us = result_.from.heap ? result_.from.heap->processes_us : 0;
  return run_us ? us / double(run_us) : 1; // how long it took is not known
}

// What is given back before it is asked for again is never held: of a buffer that each call makes
// and frees there is one.
double JoinedWorth::share_of_peak(const JoinedRow *row) const {
  const uint64_t peak = result_.from.heap ? result_.from.heap->peak_live_bytes : 0;
  return row && row->heap && peak ? std::min(1.0, double(row->heap->peak_bytes) / double(peak)) : 1;
}

} // namespace analyze
