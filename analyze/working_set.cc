// Snapshots are replayed in their order over one table of groups of 64 lines, which knows of each line
// whose it is at that moment and whether it was touched before. Phases need the replay a second time:
// where they begin is known only after the first.

#include "analyze/working_set.h"

#include "analyze/line_owners.h"
#include "analyze/ownership.h"
#include "analyze/phases.h"
#include "base/stable_sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

namespace analyze {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

struct GroupState {
  uint64_t ever = 0, previous = 0; // lines; previous is of the snapshot `seen`
  size_t seen = SIZE_MAX;
  size_t phase_number = SIZE_MAX;
  uint64_t phase = 0, phase_before = 0;           // lines of that phase, and of the one before it
  std::array<uint32_t, ASSAY_GROUP_LINES> owners; // index of a name
  GroupState() { owners.fill(kNobody); }
};

class Replay {
public:
  Replay(const profile::WorkingSet &set, LineOwners &owners) : set_(set), owners_(owners) {}

  // Calls f(snapshot, group number, touched lines, state) for every touched group, in the order of both.
  template <typename F> void run(F f) {
    for (uint32_t snapshot = 0; snapshot < set_.snapshots.size(); snapshot++) {
      open_batches(snapshot);
      apply_owners(snapshot);
      std::map<uint64_t, uint64_t> lines;
      for (const Batch &batch : open_)
        for (const auto &[group, planes] : batch.groups)
          if (uint64_t plane = planes[snapshot - batch.first])
            lines[group] |= plane;
      for (auto [group, touched] : lines)
        f(snapshot, group, touched, states_[group]);
    }
  }

  uint32_t owner(uint64_t group, unsigned line, GroupState &state) {
    uint32_t &known = state.owners[line];
    if (known == kNobody)
      known = owners_.of_address((group * ASSAY_GROUP_LINES + line) * set_.line_bytes);
    return known;
  }

private:
  struct Batch {
    uint32_t first, end; // snapshots
    std::vector<std::pair<uint64_t, std::array<uint64_t, 8>>> groups;
  };

  // Those that speak of this snapshot; they come by their first one.
  void open_batches(uint32_t snapshot) {
    std::erase_if(open_, [&](const Batch &batch) { return batch.end <= snapshot; });
    for (; next_ < set_.lines.size() && set_.lines[next_].first <= snapshot; next_++) {
      const profile::TouchedLines &lines = set_.lines[next_];
      Batch batch{lines.first, lines.first + lines.count, {}};
      profile::each_group(lines, [&](uint64_t group, const uint64_t *planes) {
        auto &copy = batch.groups.emplace_back(group, std::array<uint64_t, 8>()).second;
        std::copy(planes, planes + lines.count, copy.begin());
      });
      open_.push_back(std::move(batch));
    }
  }

  // Runs come in the order of their snapshots.
  void apply_owners(uint32_t snapshot) {
    for (; next_owned_ < set_.owned.size() && set_.owned[next_owned_].snapshot <= snapshot;
         next_owned_++) {
      const profile::OwnedLines &run = set_.owned[next_owned_];
      uint32_t name = owners_.of_site(run.owner);
      for (uint64_t line = run.first; line < run.first + run.count; line++)
        states_[line / ASSAY_GROUP_LINES].owners[line % ASSAY_GROUP_LINES] = name;
    }
  }

  const profile::WorkingSet &set_;
  LineOwners &owners_;
  std::vector<Batch> open_;
  size_t next_ = 0; // of the lines
  std::unordered_map<uint64_t, GroupState> states_;
  size_t next_owned_ = 0;
};

using Sums = std::unordered_map<uint32_t, uint64_t>; // owner -> lines

std::vector<OwnerLines> ranked(const Sums &sums) {
  std::vector<OwnerLines> rows;
  rows.reserve(sums.size());
  for (auto [owner, lines] : sums)
    rows.push_back({owner, lines});
  std::sort(rows.begin(), rows.end(), [](const OwnerLines &a, const OwnerLines &b) {
    return a.lines != b.lines ? a.lines > b.lines : a.owner < b.owner;
  });
  return rows;
}

template <typename F> void each_line(uint64_t lines, F f) {
  for (; lines; lines &= lines - 1)
    f(static_cast<unsigned>(std::countr_zero(lines)));
}

uint64_t count(uint64_t lines) {
  return static_cast<uint64_t>(std::popcount(lines));
}

class Analysis {
public:
  Analysis(const profile::Profile &profile, const profile::Process &process,
           const profile::WorkingSet &set, image::Symbols &symbols)
      : profile_(profile), set_(set), symbols_(symbols),
        owners_(profile, set, process.mappings, symbols) {
    result_.process = process;
    result_.process.working_set.reset();
    result_.program_build_id = program_build_id(profile, process);
    result_.line_bytes = set_.line_bytes;
    result_.unit = set_.unit;
    result_.losses = profile.losses;
    result_.notes = profile.notes;
  }

  WorkingSetResult run(const WorkingSetQuery &query) {
    measure_snapshots();
    add_stacks();
    result_.phases = find_phases(result_.snapshots);
    measure_phases();
    name_phases();
    measure_caches(query);
    result_.owners = owners_.take_names();
    return std::move(result_);
  }

private:
  void measure_snapshots() {
    std::vector<Sums> sums(set_.snapshots.size());
    for (const profile::Snapshot &snapshot : set_.snapshots)
      result_.snapshots.push_back({snapshot, 0, 0, 0, 0, {}, {}});
    uint64_t page_lines = 4096 / set_.line_bytes;
    Replay replay(set_, owners_);
    replay.run([&](size_t index, uint64_t group, uint64_t lines, GroupState &state) {
      SnapshotRow &row = result_.snapshots[index];
      row.lines += count(lines);
      for (uint64_t page = 0; page < ASSAY_GROUP_LINES; page += page_lines)
        row.pages +=
            (lines >> page & (page_lines == 64 ? ~0ULL : (1ULL << (page_lines % 64)) - 1)) != 0;
      if (state.seen + 1 == index && index > 0)
        row.shared_with_previous += count(lines & state.previous);
      row.new_lines += count(lines & ~state.ever);
      state.ever |= lines;
      state.previous = lines;
      state.seen = index;
      each_line(lines, [&](unsigned line) { sums[index][replay.owner(group, line, state)]++; });
    });
    for (size_t index = 0; index < result_.snapshots.size(); index++) {
      SnapshotRow &row = result_.snapshots[index];
      row.owners = ranked(sums[index]);
      result_.total_lines += row.new_lines;
      if (row.lines > result_.snapshots[result_.largest].lines)
        result_.largest = index;
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
    std::vector<Sums> sums(result_.phases.size());
    Replay replay(set_, owners_);
    replay.run([&](size_t index, uint64_t group, uint64_t lines, GroupState &state) {
      size_t number = phase_of[index];
      if (state.phase_number != number) {
        state.phase_before = state.phase_number + 1 == number ? state.phase : 0;
        state.phase = 0;
        state.phase_number = number;
      }
      uint64_t fresh = lines & ~state.phase;
      state.phase |= lines;
      Phase &phase = result_.phases[number];
      phase.lines += count(fresh);
      phase.shared_with_previous += count(fresh & state.phase_before);
      each_line(fresh, [&](unsigned line) { sums[number][replay.owner(group, line, state)]++; });
    });
    for (size_t number = 0; number < result_.phases.size(); number++) {
      Phase &phase = result_.phases[number];
      phase.owners = ranked(sums[number]);
      uint64_t sum = 0;
      for (size_t i = phase.first; i <= phase.last; i++) {
        sum += result_.snapshots[i].lines;
        phase.most_lines = std::max(phase.most_lines, result_.snapshots[i].lines);
      }
      phase.mean_lines = sum / (phase.last - phase.first + 1);
    }
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

  void measure_caches(const WorkingSetQuery &query) {
    auto add = [&](const std::string &name, uint64_t bytes) {
      if (bytes)
        result_.caches.push_back({name, bytes, 0, std::nullopt});
    };
    if (const auto &machine = result_.process.machine) {
      add("L1", machine->l1d_bytes);
      add("L2", machine->l2_bytes);
      add("L3", machine->l3_bytes);
    }
    for (const auto &[name, bytes] : query.caches)
      add(name, bytes);
    for (CacheFit &cache : result_.caches) {
      uint64_t fits = 0, all = 0;
      for (const SnapshotRow &row : result_.snapshots) {
        uint64_t length = row.when.end - row.when.begin;
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
    }
  }

  const profile::Profile &profile_;
  const profile::WorkingSet &set_;
  image::Symbols &symbols_;
  LineOwners owners_;
  WorkingSetResult result_;
};

} // namespace

std::vector<WorkingSetResult> working_sets(const profile::Profile &profile, image::Symbols &symbols,
                                           const WorkingSetQuery &query) {
  std::vector<WorkingSetResult> results;
  for (const profile::Process &process : profile.processes)
    if (const auto &set = process.working_set; set && !set->snapshots.empty())
      results.push_back(Analysis(profile, process, *set, symbols).run(query));
  return results;
}

} // namespace analyze
