// Findings about the working set, ranked and silent on noise.
//
// A finding is about a stretch of time in which the program works on the same things, and names the owner
// of most of what it works on: without one there is nothing to change. A program that goes back and forth
// has many phases that are alike, so the rules look at each and then at all of one kind together.
//
// A set that is larger than a cache matters only if the cache would have been of use: what is touched once
// needs no cache. That is told by how much of a snapshot the one before it used, too. Hardly any program
// fits into the first-level cache, so being much larger than that is no finding; being a little larger is.

#include "analyze/workingset.h"

#include "abi/records.h"
#include "abi/shadow.h"
#include "analyze/place.h"
#include "base/stable_sort.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace analyze {
namespace {

constexpr double kMinTimeShare = 0.10;
constexpr size_t kMinSnapshots = 4;       // of all phases of a kind
constexpr double kMinOwnerShare = 0.25;   // of the lines: less, and changing it changes little
constexpr double kReused = 0.5;           // share of lines that the snapshot before had
constexpr double kHardlyReused = 0.2;     // the same
constexpr double kLittleMore = 1.25;      // than a cache
constexpr double kMaxShrinking = 0.5;     // of one owner, that a person would try
constexpr double kMostlyNew = 0.5;        // share of touched lines
constexpr double kCameBack = 0.05;        // the same: neither new nor of the snapshot before
constexpr uint64_t kSmallBytes = 1 << 20; // not worth a word about streams
constexpr double kSparse = 0.25;          // share of a page that is touched
constexpr uint64_t kTlbReach =
    uint64_t{1536} * ASSAY_PAGE_BYTES; // entries of the second-level TLB of many processors

// How much a miss in the cache costs, beside one that goes to memory.
double cost(const std::string &cache) {
  return cache == "L1" ? 0.25 : cache == "L3" ? 1 : 0.5;
}

std::string objects(const OwnerName &owner) {
  if (owner.kind != "heap")
    return full_name(owner);
  return (owner.type.empty() ? "objects" : "`" + owner.type + "` objects") + " from " + owner.name;
}

// The owner to name in a sentence: the one with the most lines that has a name; none if it has too few.
const OwnerCount *to_name(const WorkingSetResult &result, const Phase &phase) {
  auto named = std::find_if(phase.owners.begin(), phase.owners.end(), [&](const OwnerCount &each) {
    return result.owners[each.owner].kind != "memory";
  });
  bool enough = named != phase.owners.end() &&
                double(named->lines) >= kMinOwnerShare * double(phase.mean_lines);
  return enough ? &*named : nullptr;
}

struct PhaseFacts {
  const Phase *phase;
  const OwnerCount *owner;
  double working_share = 0;
  double owner_share = 0;  // of its lines
  double reused_share = 0; // lines that the snapshot before, in the same phase, had
  size_t compared = 0;     // snapshots that this was seen of
  double new_share = 0;    // lines that no snapshot before had
  double mean_pages = 0;
};

PhaseFacts facts_of(const WorkingSetResult &result, const Phase &phase, const OwnerCount &owner) {
  PhaseFacts facts{&phase, &owner};
  facts.owner_share = double(owner.lines) / double(phase.mean_lines);
  uint64_t lines = 0, later_lines = 0, shared = 0, fresh = 0, pages = 0;
  for (size_t i = phase.first; i <= phase.last; i++) {
    const SnapshotRow &row = result.snapshots[i];
    if (phase.is_left_out(i))
      continue;
    lines += row.lines;
    fresh += row.new_lines;
    pages += row.pages;
    if (i > phase.first && !phase.is_left_out(i - 1)) {
      facts.compared++;
      later_lines += row.lines;
      shared += row.shared_with_previous;
    }
  }
  facts.working_share = result.working_share(phase);
  facts.reused_share = double(shared) / double(std::max<uint64_t>(later_lines, 1));
  facts.new_share = double(fresh) / double(std::max<uint64_t>(lines, 1));
  facts.mean_pages = double(pages) / double(std::max<size_t>(phase.own_snapshots(), 1));
  return facts;
}

// Phases that one finding is about.
struct Kind {
  PhaseFacts longest;
  double working_share = 0;
  size_t phases = 0, snapshots = 0;
};

class Findings {
public:
  explicit Findings(WorkingSetResult &result) : result_(result) {
    for (const CacheFit &cache : result.caches)
      if (cache.name == "TLB")
        tlb_reach_ = cache.bytes;
  }

  void find() {
    for (const Phase &phase : result_.phases) {
      const OwnerCount *owner = to_name(result_, phase);
      if (!owner)
        continue;
      PhaseFacts facts = facts_of(result_, phase, *owner);
      does_not_fit(facts);
      if (hardly_reused(facts))
        add("little_reuse", nullptr, facts);
      if (sparse(facts))
        add("sparse_pages", nullptr, facts);
    }
    for (const auto &[key, kind] : kinds_) {
      const auto &[rule, cache, owner] = key;
      if (kind.working_share < kMinTimeShare || kind.snapshots < kMinSnapshots)
        continue;
      if (rule == "little_reuse")
        say_little_reuse(kind);
      else if (rule == "sparse_pages")
        say_sparse(kind);
      else
        say_does_not_fit(rule, *cache, kind);
    }
    streaming();
    base::stable_sort(result_.findings,
                      [](const Finding &a, const Finding &b) { return a.weight > b.weight; });
  }

private:
  void add(const std::string &rule, const CacheFit *cache, const PhaseFacts &facts) {
    Kind &kind = kinds_.try_emplace({rule, cache, facts.owner->owner}, Kind{facts}).first->second;
    if (facts.working_share > kind.longest.working_share)
      kind.longest = facts;
    kind.working_share += facts.working_share;
    kind.phases++;
    kind.snapshots += facts.phase->own_snapshots();
  }

  // Lines that a phase has too many for the cache, if its largest owner gave them all up: its share.
  double to_shrink(const PhaseFacts &facts, const CacheFit &cache) const {
    uint64_t fits = cache.bytes / result_.line_bytes; // less than the mean
    auto excess = double(facts.phase->mean_lines - fits);
    return excess / (facts.owner_share * double(facts.phase->mean_lines));
  }

  // Folded to pages, lines are for the TLB, and otherwise for the caches.
  void does_not_fit(const PhaseFacts &facts) {
    bool pages = result_.line_bytes >= ASSAY_PAGE_BYTES;
    const CacheFit *largest = nullptr; // that is too small
    for (const CacheFit &cache : result_.caches) {
      uint64_t needed = result_.bytes(facts.phase->mean_lines);
      if ((cache.name == "TLB") != pages || needed <= cache.bytes)
        continue;
      if (double(needed) <= kLittleMore * double(cache.bytes) &&
          to_shrink(facts, cache) <= kMaxShrinking && facts.reused_share >= kReused)
        return add("almost_fits", &cache, facts);
      if (!largest || cache.bytes > largest->bytes)
        largest = &cache;
    }
    if (largest && largest->name != "L1" && facts.reused_share >= kReused)
      add("does_not_fit", largest, facts);
  }

  // Some of the same again, but not soon.
  bool hardly_reused(const PhaseFacts &facts) const {
    uint64_t cache = kSmallBytes;
    if (const auto &machine = result_.process.machine; machine && machine->l2_bytes)
      cache = machine->l2_bytes;
    return facts.compared >= kMinSnapshots && facts.reused_share < kHardlyReused &&
           facts.new_share < kReused && result_.bytes(facts.phase->lines) > cache;
  }

  bool sparse(const PhaseFacts &facts) const {
    double pages = facts.mean_pages * double(ASSAY_PAGE_BYTES);
    double touched = double(result_.bytes(facts.phase->mean_lines));
    return pages > double(tlb_reach_) && touched <= double(tlb_reach_) &&
           touched <= kSparse * pages && facts.owner_share >= 2 * kMinOwnerShare;
  }

  std::string bytes(uint64_t lines) const {
    return base::format_bytes(double(result_.bytes(lines)));
  }
  const OwnerName &owner(const Kind &kind) const {
    return result_.owners[kind.longest.owner->owner];
  }
  // "the phase from 49.0 M accesses on", "the run".
  std::string which(const Kind &kind) const {
    if (result_.phases.size() == 1)
      return "the run";
    uint64_t begin = result_.snapshots[kind.longest.phase->first].when.begin;
    return "the phase from " + clock_text(result_.unit, begin) + " on";
  }
  // "33 % of the run, in 12 phases": how much of it a finding is about.
  static std::string how_much(const Kind &kind) {
    return base::format_share(kind.working_share) + " of the run" +
           (kind.phases > 1 ? fmt::format(", in {} phases that are alike", kind.phases) : "");
  }
  void put(std::string rule, const Kind &kind, std::string message, double saved_lines,
           double weight, std::string evidence, std::string action) {
    put(std::move(rule), owner(kind), std::move(message), saved_lines, weight, std::move(evidence),
        std::move(action));
  }
  void put(std::string rule, const OwnerName &owner, std::string message, double saved_lines,
           double weight, std::string evidence, std::string action) {
    static constexpr uint32_t kDoubts[] = {ASSAY_LOSS_uninstrumented_module, ASSAY_LOSS_odd_address,
                                           ASSAY_LOSS_no_shadow};
    result_.findings.push_back({std::move(rule),
                                std::move(message),
                                owner.name,
                                {saved_lines * double(result_.line_bytes), "bytes"},
                                std::min(weight, 1.0),
                                std::move(evidence),
                                std::move(action),
                                losses_among(result_.losses, kDoubts),
                                {owner.type, short_place(owner.name), "", "", 0},
                                Gain::kWorkingSet});
  }

  void say_does_not_fit(const std::string &rule, const CacheFit &cache, const Kind &kind) {
    const PhaseFacts &facts = kind.longest;
    std::string size = base::format_bytes(double(cache.bytes));
    uint64_t excess = facts.phase->mean_lines - cache.bytes / result_.line_bytes;
    bool almost = rule == "almost_fits";
    double shrink = to_shrink(facts, cache) * 100;
    put(rule, kind,
        fmt::format("{} {} in {} (needs {} of {}); {} of it is {}", which(kind),
                    almost ? "almost fits" : "does not fit", cache.name,
                    bytes(facts.phase->mean_lines), size, base::format_share(facts.owner_share),
                    objects(owner(kind))),
        double(excess),
        kind.working_share * facts.owner_share * cost(cache.name) * facts.reused_share *
            (almost ? 1.2 : 1), // little work for much
        fmt::format("{}; the snapshot before used {} of the lines, too", how_much(kind),
                    base::format_share(facts.reused_share)),
        almost ? fmt::format("use {:.0f} % less of that, and it fits",
                             std::max(std::ceil(shrink), 1.0))
               : fmt::format("use less of it, keep together what is used together, or work on "
                             "one part of {} after the other",
                             size));
  }

  void say_little_reuse(const Kind &kind) {
    const PhaseFacts &facts = kind.longest;
    put("little_reuse", kind,
        fmt::format("{} comes back to its lines late: of a snapshot's lines the one before had {}; "
                    "{} of them are {}",
                    which(kind), base::format_share(facts.reused_share),
                    base::format_share(facts.owner_share), objects(owner(kind))),
        double(facts.phase->lines),
        kind.working_share * facts.owner_share * (1 - facts.reused_share) * 0.7,
        fmt::format("{}; {} in all, {} of it in a snapshot", how_much(kind),
                    bytes(facts.phase->lines), bytes(facts.phase->mean_lines)),
        "do all the work on one part before the next (blocking, fused loops), or use less of it");
  }

  void say_sparse(const Kind &kind) {
    const PhaseFacts &facts = kind.longest;
    double pages = facts.mean_pages * double(ASSAY_PAGE_BYTES);
    double touched = double(result_.bytes(facts.phase->mean_lines));
    put("sparse_pages", kind,
        fmt::format("{} uses only {} of {} of pages; {} of that is {}", which(kind),
                    base::format_share(touched / pages), base::format_bytes(pages),
                    base::format_share(facts.owner_share), objects(owner(kind))),
        (pages - touched) / double(result_.line_bytes),
        kind.working_share * facts.owner_share * (1 - touched / pages) * 0.6,
        fmt::format("{}; the TLB reaches {} at a time, the {} would fit", how_much(kind),
                    base::format_bytes(double(tlb_reach_)), base::format_bytes(touched)),
        "put what is used next to each other, allocate it together, or use huge pages "
        "(madvise with MADV_HUGEPAGE)");
  }

  // Of the whole run: lines are touched in one snapshot, and never again.
  void streaming() {
    constexpr size_t kParts = 4; // of the run, each of which has its part
    constexpr double kMinOfPart = 0.1;
    const auto &rows = result_.snapshots;
    if (rows.size() < 2 * kMinSnapshots || result_.bytes(result_.total_lines) < kSmallBytes)
      return;
    uint64_t lines = 0, stayed = 0, parts[kParts] = {};
    for (size_t i = 0; i < rows.size(); i++) {
      lines += rows[i].lines;
      stayed += rows[i].shared_with_previous;
      parts[i * kParts / rows.size()] += rows[i].new_lines;
    }
    double new_share = double(result_.total_lines) / double(lines);
    double came_back = 1 - new_share - double(stayed) / double(lines);
    uint64_t least = *std::min_element(std::begin(parts), std::end(parts));
    const OwnerRow *most = nullptr;
    for (const OwnerRow &row : result_.owner_rows)
      if (result_.owners[row.owner].kind != "memory" && (!most || row.new_lines > most->new_lines))
        most = &row;
    if (new_share < kMostlyNew || came_back > kCameBack || !most ||
        double(least) < kMinOfPart * double(result_.total_lines))
      return;
    double share = double(most->new_lines) / double(result_.total_lines);
    if (share < kMinOwnerShare)
      return;
    const OwnerName &owner = result_.owners[most->owner];
    put("streaming", owner,
        fmt::format("{} of {} are used once and not again, to the end of the run",
                    bytes(most->new_lines), objects(owner)),
        double(most->new_lines), new_share * share * 0.9,
        fmt::format(
            "{} of the lines of a snapshot are new, {} were used earlier than in the one before",
            base::format_share(new_share), base::format_share(std::max(came_back, 0.0))),
        "use the same buffer again for the next part, or free what is done with before more is "
        "allocated");
  }

  WorkingSetResult &result_;
  uint64_t tlb_reach_ = kTlbReach;
  std::map<std::tuple<std::string, const CacheFit *, uint32_t>, Kind> kinds_;
};

} // namespace

void find_workingset_findings(WorkingSetResult &result) {
  Findings(result).find();
}

} // namespace analyze
