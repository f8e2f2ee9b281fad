// A module counts accesses if one of its units was built for this tool; one that was built for another tool alone
// does not.

#include "analyze/heap_coverage.h"

#include "analyze/measured.h"
#include "analyze/ownership.h"
#include "image/elf.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace analyze {
namespace {

constexpr uint64_t kFineBlockBytes = 32; // ASSAY_COUNTERS_FINE

// A sum of runs that counted differently says only what all of them can say.
void describe_counters(HeapResult &result, const profile::Profile &profile) {
  std::set<uint64_t> layouts;
  for (const profile::Process &process : profile.processes) {
    layouts.insert(process.counters & ASSAY_COUNTERS_LAYOUT);
    result.globals_counted |= (process.counters & ASSAY_COUNTERS_GLOBALS) != 0;
    result.stacks_counted |= (process.counters & ASSAY_COUNTERS_STACK) != 0;
  }
  result.reads_apart = layouts.empty() || layouts == std::set<uint64_t>{ASSAY_COUNTERS_HALVES};
  if (layouts == std::set<uint64_t>{ASSAY_COUNTERS_FINE})
    result.block_bytes = kFineBlockBytes;
  if (layouts.size() > 1)
    result.notes.emplace_back(
        "the processes counted accesses in different ways, so loads and stores are not told apart, "
        "and blocks differ in size; look at their profiles one by one");
}

} // namespace

bool counts_accesses(const profile::Profile &profile) {
  return std::any_of(
             profile.modules.begin(), profile.modules.end(),
             [](const profile::Module &module) { return measured(module, ASSAY_TOOL_heap); }) &&
         !profile.losses.count(ASSAY_LOSS_no_shadow);
}

void describe_run(HeapResult &result, const profile::Profile &profile) {
  result.losses = losses_of(profile, ASSAY_TOOL_heap);
  result.notes = notes_of(profile);
  result.programs = program_names(profile);
  const ModuleCounts modules = count_modules(profile, ASSAY_TOOL_heap);
  result.modules_total = modules.all;
  result.modules_instrumented = modules.measured;
  if (!profile.processes.empty())
    result.program_build_id = program_build_id(profile, profile.processes.front());
  for (const profile::Process &process : profile.processes) {
    // A run that was measured otherwise, such as a recording of sampled values, has a time of its own.
    if (measured(profile, ASSAY_TOOL_heap) &&
        !(assay_tools_or_default(process.tools) & ASSAY_TOOL_heap))
      continue;
    result.processes.push_back(process);
    uint64_t end_us = 0, begin_us = process.reset_us.value_or(0);
    for (const profile::TimelinePoint &point : process.timeline)
      end_us = std::max(end_us, point.time_us);
    for (const profile::Ending &end : process.ends)
      end_us = std::max(end_us, end.time_us);
    const uint64_t us = end_us - std::min(begin_us, end_us);
    result.run_us = std::max(result.run_us, us);
    result.processes_us += us;
  }
  describe_counters(result, profile);
  result.peak_live_bytes = peak_live_bytes(profile);
  result.peak_is_divided =
      result.peak_live_bytes == 0 ||
      std::ranges::any_of(profile.heap, [](const auto &each) { return each.at_peak_bytes > 0; });
  result.accesses_counted = counts_accesses(profile);
}

// Libraries of the system make allocations on behalf of their callers and cannot be rebuilt by
// whoever reads this; a module counts only where it owns an allocation.
void describe_coverage(HeapResult &result, const profile::Profile &profile) {
  result.measured = profile.processes.empty() || measured(profile, ASSAY_TOOL_heap);
  std::set<std::string> plain, found;
  for (const profile::Module &module : profile.modules)
    if (!measured(module, ASSAY_TOOL_heap) && module.path.starts_with('/'))
      plain.insert(module.path);
  uint64_t counted = 0;
  for (const HeapContextRow &row : result.contexts) {
    if (result.accesses_counted && row.accesses_counted)
      counted += row.sums.all.size_total;
    const image::Frame &frame = row.owner_frame();
    if (plain.count(frame.module) && !is_allocation_machinery(frame))
      found.insert(frame.module);
  }
  uint64_t all = result.totals.all.size_total;
  result.counted_bytes_share = all ? double(counted) / double(all) : 1;
  if (!result.accesses_counted || found.empty())
    return;
  result.uninstrumented_allocators.assign(found.begin(), found.end());
  uint64_t &loss = result.losses[ASSAY_LOSS_uninstrumented_module];
  loss = std::max<uint64_t>(loss, found.size());
}

// Stripped: a file that cannot be read, or is another one by now, has a note of its own. Local functions
// of the system's libraries never have names, and are nobody's to change.
void describe_names(HeapResult &result, const profile::Profile &profile) {
  struct Seen {
    const image::Frame *frame = nullptr;
    bool named = false;
  };
  std::map<std::string_view, Seen> seen; // by module
  for (const HeapContextRow &row : result.contexts)
    for (const image::Frame &frame : row.frames) {
      Seen &module = seen[frame.module];
      module.frame = &frame;
      module.named |= !frame.linkage_name.empty();
    }
  for (const profile::Module &module : profile.modules) {
    auto known = seen.find(module.path);
    if (known != seen.end() && !known->second.named && module.path.starts_with('/') &&
        !is_allocation_machinery(*known->second.frame) &&
        image::file_with(module.build_id, module.path, module.kept))
      result.nameless_modules.push_back(module.path);
  }
}

} // namespace analyze
