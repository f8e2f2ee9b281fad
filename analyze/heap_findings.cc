// Findings about the heap, ranked and silent on noise.
//
// Each rule is a share of a total (untouched byte-seconds, allocations, fetched bytes), so that
// weights compare, and has two thresholds: a share below which nobody cares, and an absolute amount
// below which the run was too small to tell, or the cost too small to notice: what costs time is held
// against the time of the run. A filter or missing counts silence or qualify a rule; a rule that needs
// accesses says nothing when they were not counted. Rules look at sites, since a line that wastes a
// little in each of a hundred contexts wastes much.
//
// Which bytes were touched is known of counted code alone. What libc, the kernel, or a library that
// was not rebuilt does with a buffer is not seen: a buffer that read() fills looks untouched. So the
// advice to make something smaller always has a condition, and of a buffer that counted code hardly
// touches nothing is said: somebody else has it.

#include "analyze/heap.h"
#include "analyze/place.h"

#include "abi/records.h"
#include "base/stable_sort.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace analyze {
namespace {

constexpr double kMinShare = 0.10;            // of the total that the rule is about
constexpr double kMinColdByteSeconds = 1e5;   // 100 kB for a second
constexpr double kMinWastedBytes = 64 * 1024; // fetched but not used, or never needed
constexpr double kMinHeldBytes = 64 * 1024;   // untouched, on average over the run
constexpr uint64_t kMinChurn = 1000;          // objects
constexpr double kMinChurnPerSecond = 10'000; // objects; some 0.1 % of a cpu's time
constexpr double kMinCopiedPerSecond = 100e6; // bytes; some 1 % of a cpu's time
constexpr double kShortLifeUs = 1000;
constexpr double kBadlyUsed = 0.5;        // share of blocks
constexpr double kHardlyTouched = 0.2;    // share of blocks
constexpr uint64_t kMinLentBytes = 4096;  // of a buffer that is handed to code that is not counted
constexpr double kTouchedByOthers = 0.01; // share of bytes

std::string kind_of(const HeapContextRow &row) {
  return row.type.empty() ? "objects" : "`" + row.type + "` objects";
}

constexpr uint32_t kAboutAccesses[] = {ASSAY_LOSS_uninstrumented_module, ASSAY_LOSS_odd_address,
                                       ASSAY_LOSS_mixed_counters, ASSAY_LOSS_shared_counters,
                                       ASSAY_LOSS_forked_use};

std::vector<std::string> doubts(const HeapResult &result, bool needs_accesses) {
  return losses_among(result.losses, needs_accesses ? kAboutAccesses : std::span<const uint32_t>());
}

std::vector<std::string> doubts_about_size(const HeapResult &result) {
  std::vector<std::string> names = doubts(result, true);
  names.emplace_back(kUncountedUse);
  return names;
}

// Whether an amount that costs time is one of a busy program, not of a short stretch of a long run.
bool often(const HeapResult &result, double amount, double least_per_second) {
  return amount >= least_per_second * double(result.processes_us) / 1e6;
}

// A buffer of no struct's size that counted code hardly touches: read(), or a library, may fill it. What
// has one byte is one whatever it is called: an enum over unsigned char, too.
bool may_be_lent(const HeapContextRow &row) {
  const AssayHib &h = row.sums.all;
  return (!row.type_is_struct() || row.type_size == 1) &&
         h.size_total > kMinLentBytes * h.alloc_count &&
         double(h.touched_bytes) < kTouchedByOthers * double(h.size_total);
}

void cold_bytes(HeapResult &result, const HeapContextRow &row) {
  const AssayHib &h = row.sums.all;
  double share = double(h.cold_byte_us_total) / double(result.whole.all.byte_us_total);
  double cold = double(h.cold_byte_us_total) / 1e6;
  if (!(share >= kMinShare) || cold < kMinColdByteSeconds)
    return;
  double untouched = 1 - double(h.touched_bytes) / double(h.size_total);
  double held = double(h.cold_byte_us_total) / double(std::max<uint64_t>(result.run_us, 1));
  if (held < kMinHeldBytes)
    return;
  bool never = row.sums.used_share() < kHardlyTouched;
  result.findings.push_back(
      {"cold_bytes",
       fmt::format("{} of the bytes in {} from {} are never touched, for {} each",
                   base::format_share(untouched), kind_of(row), place(row),
                   base::format_duration_us(row.sums.mean_lifetime_us())),
       place(row),
       {held, "bytes"},
       share,
       fmt::format("{}, {} asked for, {} held untouched on average over the run ({} of all "
                   "byte-seconds)",
                   base::format_counted(double(h.alloc_count), "object"),
                   base::format_bytes(double(h.size_total)), base::format_bytes(held),
                   base::format_share(share)),
       never ? "allocate it when it is first used, or free it earlier; make it smaller, if nobody "
               "but counted code uses it"
             : "move the part that is used into an allocation of its own; make it smaller, if "
               "nobody but counted code uses it",
       doubts_about_size(result)});
}

void wasted_lines(HeapResult &result, const HeapContextRow &row) {
  const AssayHib &h = row.sums.all;
  if (h.alloc_count == 0)
    return;
  // How many blocks objects of that size need: where the allocator put them so that they reach into one more, no
  // other order of members changes that.
  const auto needed =
      h.alloc_count * static_cast<uint64_t>(std::ceil(double(h.size_total) /
                                                      double(h.alloc_count * result.block_bytes)));
  const uint64_t unused = std::min(row.sums.untouched_blocks(),
                                   needed > h.blocks_touched ? needed - h.blocks_touched : 0);
  double wasted = double(unused * result.block_bytes);
  double share = double(unused) / double(std::max<uint64_t>(result.whole.all.blocks_spanned, 1));
  // Objects of one block are either used or not: that is cold, not badly laid out.
  if (share < kMinShare || wasted < kMinWastedBytes || row.sums.used_share() > kBadlyUsed ||
      needed < 2 * h.alloc_count || row.sums.accesses() == 0 || is_linked_by_library(row.type))
    return;
  result.findings.push_back(
      {"wasted_lines",
       fmt::format("only {} of the cache lines of {} from {} are used",
                   base::format_share(row.sums.used_share()), kind_of(row), place(row)),
       place(row),
       {wasted, "bytes"},
       share * 0.9, // the same bytes may also be cold, and that says more
       fmt::format("{} of {} {}-byte blocks in {}", base::format_count(double(h.blocks_touched)),
                   base::format_count(double(h.blocks_spanned)), result.block_bytes,
                   base::format_counted(double(h.alloc_count), "object")),
       how_to_lay_out(row.type),
       doubts_about_size(result)});
}

// A buffer that is used from its begin has a part that nobody needs; a struct of which members are
// unused is for wasted_lines.
void over_reserve(HeapResult &result, const HeapContextRow &row) {
  const AssayHib &h = row.sums.all;
  double unused = double(row.sums.untouched_bytes());
  double share = unused / double(std::max<uint64_t>(result.whole.all.size_total, 1));
  bool one_struct = row.type_size && h.size_total < 2 * row.type_size * h.alloc_count;
  if (!row.sums.over_reserved() || one_struct || share < kMinShare || unused < kMinWastedBytes)
    return;
  double mean = double(h.size_total) / double(h.alloc_count);
  double touched = double(h.touched_bytes) / double(h.alloc_count);
  std::string grown;
  if (h.realloc_count)
    grown = fmt::format("; {} of realloc copied {}",
                        base::format_counted(double(h.realloc_count), "call"),
                        base::format_bytes(double(h.realloc_moved_bytes)));
  result.findings.push_back(
      {"over_reserve",
       fmt::format("{} of the {} in {} from {} are reserved and never used",
                   base::format_bytes(unused), base::format_bytes(double(h.size_total)),
                   kind_of(row), place(row)),
       place(row),
       {unused, "bytes"},
       share * 0.95, // the same bytes may also be cold, and that says more
       fmt::format("{} of {}, of which {} are touched{}",
                   h.alloc_count == 1
                       ? "1 object"
                       : base::format_count(double(h.alloc_count)) + " objects, on average",
                   base::format_bytes(mean), base::format_bytes(touched), grown),
       h.realloc_count
           ? fmt::format("shrink it to what it holds when it is complete (realloc, "
                         "shrink_to_fit), or, if only its begin is used, and by nobody but counted "
                         "code, reserve about {} at once",
                         base::format_bytes(touched))
           : fmt::format("shrink it to what it holds when it is complete (realloc, "
                         "shrink_to_fit), or, if only its begin is used, and by nobody but counted "
                         "code, ask for about {}",
                         base::format_bytes(touched)),
       doubts_about_size(result)});
}

// The last two findings are of the same bytes, cold and reserved: the heavier one stays, with the advice of the
// second, which knows how much would do.
void say_once(std::vector<Finding> &findings, bool is_hardly_touched) {
  Finding &cold = findings[findings.size() - 2], &reserved = findings.back();
  if (!is_hardly_touched) // else nearly nothing would do
    cold.action = reserved.action;
  if (reserved.weight > cold.weight)
    std::swap(cold, reserved);
  findings.pop_back();
}

// Then one cannot stand for the others: at the peak, some tenth of all that there were at any time.
bool many_live_at_once(const HeapResult &result, const HeapContextRow &row) {
  return result.peak_is_divided && row.sums.at_peak_bytes * 10 > row.sums.all.size_total;
}

void churn(HeapResult &result, const HeapContextRow &row) {
  const AssayHib &h = row.sums.all;
  uint64_t ended = h.alloc_count - row.sums.live.alloc_count;
  double share = double(ended) / double(std::max<uint64_t>(result.whole.all.alloc_count, 1));
  if (ended < kMinChurn || share < kMinShare || !often(result, double(ended), kMinChurnPerSecond) ||
      row.sums.mean_lifetime_us() > kShortLifeUs)
    return;
  std::string temporaries;
  if (h.temporary_count * 2 > ended)
    temporaries = fmt::format(", {} of them before the next allocation",
                              base::format_share(double(h.temporary_count) / double(ended)));
  result.findings.push_back(
      {"churn",
       fmt::format("{} {} from {} live {} on average", base::format_count(double(ended)),
                   kind_of(row), place(row), base::format_duration_us(row.sums.mean_lifetime_us())),
       place(row),
       {double(ended), "allocations"},
       share,
       fmt::format("{} of all allocations, freed again{}", base::format_share(share), temporaries),
       !temporaries.empty() ? "put it on the stack, or reuse one object"
       : many_live_at_once(result, row)
           ? "reserve ahead, or take them from an arena"
           : "reuse one object, reserve ahead, or take them from an arena",
       doubts(result, false)});
}

void migration(HeapResult &result, const HeapContextRow &row) {
  const AssayHib &h = row.sums.all;
  uint64_t ended = h.alloc_count - row.sums.live.alloc_count;
  double share = double(h.migrated_cpu) / double(std::max<uint64_t>(ended, 1));
  double of_all =
      double(h.migrated_cpu) / double(std::max<uint64_t>(result.whole.all.alloc_count, 1));
  if (h.migrated_cpu < kMinChurn || share < 0.5 || of_all < kMinShare ||
      !often(result, double(h.migrated_cpu), kMinChurnPerSecond))
    return;
  result.findings.push_back(
      {"migration",
       fmt::format("{} of the {} from {} are freed on another cpu than they were allocated on",
                   base::format_share(share), kind_of(row), place(row)),
       place(row),
       {double(h.migrated_cpu), "allocations"},
       of_all * 0.5, // part of it is the scheduler's doing
       fmt::format("{} of {} objects", base::format_count(double(h.migrated_cpu)),
                   base::format_count(double(ended))),
       "free them in the thread that made them, or hand over whole batches",
       doubts(result, false)});
}

// A buffer that doubles gets as many calls as its size has bits, and less is copied than its final
// size; of one that grows by half, twice as much. By steps, half of the calls copy the final size.
bool grows_by_factor(const AssayHib &h) {
  constexpr double kMaxCopied = 2.2;
  const auto objects = double(std::max<uint64_t>(h.alloc_count, 1));
  const double calls = double(h.realloc_count) / objects, size = double(h.size_total) / objects;
  return calls <= 2 + std::log2(std::max(size, 1.)) &&
         double(h.realloc_moved_bytes) <= kMaxCopied * double(h.size_total);
}

void realloc_growth(HeapResult &result, const HeapContextRow &row) {
  const AssayHib &h = row.sums.all;
  double moved = double(h.realloc_moved_bytes);
  double share = moved / double(std::max<uint64_t>(h.size_total, 1));
  double of_all = moved / double(std::max<uint64_t>(result.whole.all.size_total, 1));
  if (moved < 16 * kMinWastedBytes || share < 0.5 || of_all < kMinShare ||
      !often(result, moved, kMinCopiedPerSecond))
    return;
  result.findings.push_back(
      {"realloc_growth",
       fmt::format("realloc copies {} while {} from {} grow", base::format_bytes(moved),
                   kind_of(row), place(row)),
       place(row),
       {moved, "bytes"},
       std::min(0.5, of_all),
       fmt::format("{} of realloc for {}", base::format_counted(double(h.realloc_count), "call"),
                   base::format_counted(double(h.alloc_count), "object")),
       grows_by_factor(h) ? "ask for the final size at once: it grows by a factor already"
                          : "ask for the final size at once, or grow by a factor instead of a step",
       doubts(result, false)});
}

} // namespace

void find_heap_findings(HeapResult &result) {
  for (const HeapContextRow &row : result.sites) {
    // Whoever suppresses a leak wants to hear nothing of its objects.
    if (row.sums.all.alloc_count == row.sums.suppressed_count)
      continue;
    auto ask = [&](auto rule, Gain gain) {
      const size_t before = result.findings.size();
      rule(result, row);
      if (result.findings.size() == before)
        return false;
      result.findings.back().about = {row.type, site_of(row), "", "", 0};
      result.findings.back().gain = gain;
      return true;
    };
    if (result.accesses_counted && row.accesses_counted && !may_be_lent(row)) {
      const bool is_cold = ask(cold_bytes, Gain::kMemory);
      if (!ask(over_reserve, Gain::kMemory)) // one of them says what the bytes are there for
        ask(wasted_lines, Gain::kLineUse);
      else if (is_cold)
        say_once(result.findings, row.sums.used_share() < kHardlyTouched);
    }
    ask(churn, Gain::kCalls);
    ask(migration, Gain::kCalls);
    ask(realloc_growth, Gain::kCopiedBytes);
  }
  base::stable_sort(result.findings,
                    [](const Finding &a, const Finding &b) { return a.weight > b.weight; });
}

} // namespace analyze
