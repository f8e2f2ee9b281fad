// Snapshots are replayed in their order; of each line it is known in which snapshot it was touched last,
// and from that follows what is new, what stayed, and how it is used again. Phases need the replay a
// second time: where they begin is known only after the first.

#include "analyze/workingset.h"

#include "analyze/heap.h"

#include "analyze/line_replay.h"
#include "analyze/measured.h"
#include "analyze/ownership.h"
#include "analyze/phases.h"
#include "analyze/regular_expression.h"
#include "base/fail.h"
#include "base/sort_key.h"
#include "base/stable_sort.h"
#include "base/units.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

namespace analyze {
namespace {

using Sums = std::unordered_map<uint32_t, uint64_t>; // owner -> lines

std::vector<OwnerCount> ranked(const Sums &sums) {
  std::vector<OwnerCount> rows;
  rows.reserve(sums.size());
  for (auto [owner, lines] : sums)
    rows.push_back({owner, lines});
  std::sort(rows.begin(), rows.end(), [](const OwnerCount &a, const OwnerCount &b) {
    return a.lines != b.lines ? a.lines > b.lines : a.owner < b.owner;
  });
  return rows;
}

uint64_t count(uint64_t lines) {
  return static_cast<uint64_t>(std::popcount(lines));
}

// How many recorded lines are one line of the size that is asked for.
uint64_t fold_of(const profile::WorkingSet &set, uint64_t line_bytes) {
  constexpr uint64_t kMaxBytes = 1 << 30;
  if (line_bytes == 0)
    return 1;
  uint64_t fold = line_bytes / set.line_bytes;
  if (line_bytes % set.line_bytes || !std::has_single_bit(fold) || line_bytes > kMaxBytes)
    base::fail("--line {}: lines of {} bytes were recorded; give {}, {}, {} and so on, up to 1GiB",
               line_bytes, set.line_bytes, set.line_bytes, 2 * set.line_bytes, 4 * set.line_bytes);
  return fold;
}

class Analysis {
public:
  Analysis(const profile::Profile &profile, const profile::Process &process,
           const profile::WorkingSet &set, image::Symbols &symbols, const WorkingSetQuery &query)
      : profile_(profile), set_(set), symbols_(symbols), query_(query),
        fold_(fold_of(set, query.line_bytes)),
        owners_(profile, set, process.mappings, symbols, query.wrappers) {
    result_.process = process;
    result_.process.workingset.reset();
    result_.program_build_id = program_build_id(profile, process);
    result_.line_bytes = set_.line_bytes * fold_;
    result_.unit = set_.unit;
    result_.losses = losses_of(profile, ASSAY_TOOL_workingset);
    result_.notes = profile.notes;
  }

  WorkingSetResult run() {
    measure_snapshots();
    add_stacks();
    result_.threads = find_thread_work(result_.snapshots);
    result_.phases = find_phases(result_.snapshots);
    measure_phases();
    name_phases();
    result_.owners = owners_.take_names();
    find_workingset_findings(result_);
    note_headers();
    filter_owners();
    sort_owners();
    result_.notes.insert(result_.notes.end(), symbols_.notes().begin(), symbols_.notes().end());
    return std::move(result_);
  }

private:
  // Where small objects lie farther apart than natively, they take more lines.
  void note_headers() {
    constexpr uint64_t kSmall = 96; // bytes, with whose headers an object takes half as much again
    constexpr double kMuch = .25;   // of the set
    const profile::Process &process = result_.process;
    if (!(process.tools & (ASSAY_TOOL_heap | ASSAY_TOOL_objects)) ||
        (":" + process.options + ":").find(":headers=0:") != std::string::npos)
      return;
    const auto [count, bytes] = heap_objects();
    double lines = 0, heap_lines = 0;
    for (const OwnerRow &row : result_.owner_rows) {
      lines += row.mean_lines;
      heap_lines += result_.owners[row.owner].kind == "heap" ? row.mean_lines : 0;
    }
    if (count && bytes < kSmall * count && heap_lines > kMuch * lines)
      result_.notes.push_back(fmt::format(
          "objects on the heap, of {} in the mean, lie 64 bytes and more apart here, for the "
          "headers of heap and objects: natively they take fewer lines; `assay run --options "
          "headers=0` leaves them in their places",
          base::format_bytes(double(bytes / count))));
  }

  // How many there were in the run, and their bytes.
  std::pair<uint64_t, uint64_t> heap_objects() const {
    uint64_t count = 0, bytes = 0;
    for (const profile::HeapContext &context : profile_.heap)
      for (const AssayHib *part : {&context.freed, &context.live}) {
        count += part->alloc_count;
        bytes += part->size_total;
      }
    if (count == 0)
      for (const profile::ObjectGroup &group : profile_.object_groups)
        if (group.kind == ASSAY_OBJECT_HEAP) {
          count += group.sums.count;
          bytes += group.sums.bytes;
        }
    return {count, bytes};
  }

  void measure_snapshots() {
    std::vector<uint64_t> lengths;
    for (const profile::Snapshot &snapshot : set_.snapshots) {
      result_.snapshots.push_back({snapshot, 0, 0, 0, 0, {}, {}, {}});
      lengths.push_back(snapshot.length());
    }
    Reuse reuse(std::move(lengths));
    std::unordered_map<uint64_t, NumberOfLine> last_touch; // snapshot + 1; 0: none
    std::vector<Sums> sums(set_.snapshots.size());
    Sums fresh;
    size_t running = 0;
    LineReplay replay(set_, owners_, fold_);
    replay.run([&](const TouchedGroup &group) {
      for (; running < group.snapshot; running++)
        reuse.end_snapshot();
      SnapshotRow &row = result_.snapshots[group.snapshot];
      row.lines += count(group.lines);
      auto &last = last_touch.try_emplace(group.group).first->second;
      uint64_t never = 0;
      each_number(group.lines, last, [&](uint32_t snapshot, uint64_t lines) {
        reuse.touch(snapshot ? snapshot - 1 : Reuse::kNever, count(lines));
        if (snapshot == 0)
          never = lines;
        else if (snapshot == group.snapshot)
          row.shared_with_previous += count(lines);
      });
      row.new_lines += count(never);
      each_number(group.lines, group.owners, [&](uint32_t owner, uint64_t lines) {
        sums[group.snapshot][owner] += count(lines);
        if (lines & never)
          fresh[owner] += count(lines & never);
      });
      for (size_t line = 0; line < last.size(); line++)
        if (group.lines >> line & 1)
          last[line] = static_cast<uint32_t>(group.snapshot + 1);
    });
    for (; running < result_.snapshots.size(); running++)
      reuse.end_snapshot();
    for (size_t index = 0; index < result_.snapshots.size(); index++) {
      SnapshotRow &row = result_.snapshots[index];
      row.owners = ranked(sums[index]);
      row.pages = replay.pages()[index];
      result_.total_lines += row.new_lines;
      if (row.lines > result_.snapshots[result_.largest].lines)
        result_.largest = index;
    }
    result_.periods = reuse.periods();
    measure_owners(fresh);
    measure_caches(reuse);
  }

  void measure_owners(const Sums &fresh) {
    const double all = result_.weight();
    std::map<uint32_t, OwnerRow> rows;
    for (const SnapshotRow &snapshot : result_.snapshots) {
      double share = snapshot.weight() / all;
      result_.mean_lines += double(snapshot.lines) * share;
      for (const OwnerCount &owner : snapshot.owners) {
        OwnerRow &row = rows[owner.owner];
        row.owner = owner.owner;
        row.mean_lines += double(owner.lines) * share;
        row.most_lines = std::max(row.most_lines, owner.lines);
        row.time_share += share;
      }
    }
    for (auto &[owner, row] : rows) {
      if (auto lines = fresh.find(owner); lines != fresh.end())
        row.new_lines = lines->second;
      result_.owner_rows.push_back(row);
    }
  }

  void add_stacks() {
    for (const profile::SnapshotStack &stack : set_.stacks) {
      ThreadStack row;
      row.thread = stack.thread;
      row.frames = frames_of(profile_, stack.stack, symbols_);
      row.owner = owner(row.frames);
      result_.snapshots[stack.snapshot].stacks.push_back(std::move(row));
    }
  }

  void measure_phases() {
    std::vector<size_t> phase_of(result_.snapshots.size());
    for (size_t phase = 0; phase < result_.phases.size(); phase++)
      for (size_t i = result_.phases[phase].first; i <= result_.phases[phase].last; i++)
        phase_of[i] = phase;
    struct PhaseLines {
      size_t phase = SIZE_MAX;
      uint64_t lines = 0, before = 0; // of that phase, and of the one before it
    };
    std::unordered_map<uint64_t, PhaseLines> states;
    LineReplay replay(set_, owners_, fold_);
    replay.run([&](const TouchedGroup &group) {
      size_t number = phase_of[group.snapshot];
      PhaseLines &state = states[group.group];
      if (state.phase != number)
        state = {number, 0, state.phase + 1 == number ? state.lines : 0};
      uint64_t fresh = group.lines & ~state.lines;
      state.lines |= group.lines;
      Phase &phase = result_.phases[number];
      phase.lines += count(fresh);
      phase.shared_with_previous += count(fresh & state.before);
    });
    for (Phase &phase : result_.phases)
      measure_means(phase);
  }

  // Not of the lines that it touched in all, which several may have owned one after the other.
  void measure_means(Phase &phase) const {
    double sum = 0, length = 0;
    std::unordered_map<uint32_t, double> of_owner;
    for (size_t i = phase.first; i <= phase.last; i++) {
      const SnapshotRow &row = result_.snapshots[i];
      phase.most_lines = std::max(phase.most_lines, row.lines);
      if (phase.is_left_out(i))
        continue;
      sum += double(row.lines) * row.weight();
      length += row.weight();
      for (const OwnerCount &each : row.owners)
        of_owner[each.owner] += double(each.lines) * row.weight();
    }
    if (length <= 0)
      return; // nothing was touched
    phase.mean_lines = static_cast<uint64_t>(sum / length);
    Sums means;
    for (const auto &[owner, lines] : of_owner)
      if (lines >= length)
        means[owner] = static_cast<uint64_t>(lines / length);
    phase.owners = ranked(means);
  }

  void filter_owners() {
    result_.filter = query_.filter;
    TextFilter filter(query_.filter);
    std::erase_if(result_.owner_rows, [&](const OwnerRow &row) {
      const OwnerName &owner = result_.owners[row.owner];
      if (filter.keeps(owner.name) || filter.keeps_type(owner.type) || filter.keeps(owner.kind))
        return false;
      result_.filtered_owners++;
      result_.filtered_mean_lines += row.mean_lines;
      return true;
    });
  }

  void sort_owners() {
    auto before = owner_order(query_.sort).before;
    base::stable_sort(result_.owner_rows, [&](const OwnerRow &a, const OwnerRow &b) {
      return before(a, b, result_.owners);
    });
  }

  void name_phases() {
    for (Phase &phase : result_.phases) {
      std::map<std::string, size_t> functions;
      for (size_t i = phase.first; i <= phase.last; i++)
        for (const ThreadStack &stack : result_.snapshots[i].stacks)
          functions[stack.frames[stack.owner].function]++;
      phase.functions.assign(functions.begin(), functions.end());
      base::stable_sort(phase.functions,
                        [](const auto &a, const auto &b) { return a.second > b.second; });
    }
  }

  void measure_caches(const Reuse &reuse) {
    auto add = [&](const std::string &name, uint64_t bytes) {
      if (bytes)
        result_.caches.push_back({name, bytes, 0, std::nullopt});
    };
    if (const auto &machine = result_.process.machine) {
      add("L1", machine->l1d_bytes);
      add("L2", machine->l2_bytes);
      add("L3", machine->l3_bytes);
    }
    for (const auto &[name, bytes] : query_.caches)
      add(name, bytes);
    for (CacheFit &cache : result_.caches) {
      uint64_t fits = 0, all = 0;
      for (const SnapshotRow &row : result_.snapshots) {
        uint64_t length = row.when.length();
        all += length;
        if (result_.bytes(row.lines) <= cache.bytes) {
          fits += length;
          if (!cache.fits_from)
            cache.fits_from = row.when.begin;
        } else {
          cache.fits_from.reset();
        }
      }
      cache.fits_share = all ? double(fits) / double(all) : 0;
      add_miss_point(cache.name, cache.bytes, reuse);
    }
    constexpr uint64_t kMinCache = 4096;
    for (uint64_t bytes = std::max(kMinCache, result_.line_bytes);; bytes *= 2) {
      if (std::none_of(result_.caches.begin(), result_.caches.end(),
                       [&](const CacheFit &cache) { return cache.bytes == bytes; }))
        add_miss_point("", bytes, reuse);
      if (bytes >= result_.bytes(result_.total_lines))
        break;
    }
    base::stable_sort(result_.miss_curve,
                      [](const MissPoint &a, const MissPoint &b) { return a.bytes < b.bytes; });
  }

  void add_miss_point(const std::string &name, uint64_t bytes, const Reuse &reuse) {
    uint64_t lines = bytes / result_.line_bytes;
    result_.miss_curve.push_back(
        {name, bytes, reuse.misses(lines), result_.snapshots[result_.largest].lines > lines});
  }

  const profile::Profile &profile_;
  const profile::WorkingSet &set_;
  image::Symbols &symbols_;
  const WorkingSetQuery &query_;
  uint64_t fold_;
  OwnerFinder owners_;
  WorkingSetResult result_;
};

} // namespace

std::string clock_text(uint32_t unit, uint64_t value) {
  switch (unit) {
  case ASSAY_TIME_ACCESSES: return base::format_counted(double(value), "access", "accesses");
  case ASSAY_TIME_MARKS: return fmt::format("mark {}", value);
  default: return base::format_duration_us(double(value));
  }
}

std::span<const OwnerOrder> owner_orders() {
  using Owners = std::vector<OwnerName>;
  static constexpr OwnerOrder kOrders[] = {
      {"lines", "What is in the working set?",
       [](const OwnerRow &a, const OwnerRow &b, const Owners &) {
         return a.mean_lines > b.mean_lines;
       }},
      {"most", "What has the most lines at one time?",
       [](const OwnerRow &a, const OwnerRow &b, const Owners &) {
         return a.most_lines > b.most_lines;
       }},
      {"new", "What makes it grow?",
       [](const OwnerRow &a, const OwnerRow &b, const Owners &) {
         return a.new_lines > b.new_lines;
       }},
      {"time", "What is in it for how long?",
       [](const OwnerRow &a, const OwnerRow &b, const Owners &) {
         return a.time_share > b.time_share;
       }},
      {"name", "What is in the working set, by name?",
       [](const OwnerRow &a, const OwnerRow &b, const Owners &owners) {
         return owners[a.owner] < owners[b.owner];
       }},
  };
  return kOrders;
}

const OwnerOrder &owner_order(const std::string &key) {
  return base::chosen_order(owner_orders(), key);
}

std::vector<WorkingSetResult> workingsets(const profile::Profile &profile, image::Symbols &symbols,
                                          const WorkingSetQuery &query) {
  WorkingSetQuery whole = query;
  find_wrappers(profile, symbols, whole.wrappers);
  std::vector<WorkingSetResult> results;
  for (const profile::Process &process : profile.processes)
    if (const auto &set = process.workingset; set && !set->snapshots.empty())
      results.push_back(Analysis(profile, process, *set, symbols, whole).run());
  return results;
}

std::string why_no_working_sets(const profile::Profile &profile) {
  const auto is_lost = [&](uint32_t kind) { return profile.losses.contains(kind); };
  if (is_lost(ASSAY_LOSS_truncated) && !is_lost(ASSAY_LOSS_killed))
    return "the file is damaged before the first snapshot of the working set; copy it again, or "
           "run the program again";
  if (measured(profile, ASSAY_TOOL_workingset))
    return "no snapshot of the working set is in this profile, because the run ended without a "
           "dump before the first one was written; let it end normally, or write sooner with "
           "`--options flush_ms=N`";
  return "there is no working set in this profile; build the program with -fassay=workingset, and "
         "run it again";
}

} // namespace analyze
