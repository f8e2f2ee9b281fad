#include "values/profile_parts.h"

#include "abi/records.h"
#include "profile/code_values.h"
#include "profile/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

namespace values {
namespace {

namespace fs = std::filesystem;

const char *const kKernelFile = "kernel.assay";
const char *const kMadeCodeFile = "made-code.assay";
constexpr size_t kLongestName = 60;

// What one module has of a recording.
struct OfModule {
  std::vector<profile::SampledInstruction *> instructions;
  std::vector<profile::SampledValues *> lists;
  std::vector<profile::MemoryConflict *> conflicts;
  bool is_empty() const { return instructions.empty() && lists.empty() && conflicts.empty(); }
};

std::string file_of(const profile::Module &module) {
  if (module.path.starts_with("[kernel]"))
    return kKernelFile;
  if (module.build_id.empty() && module.path.starts_with('['))
    return kMadeCodeFile;
  std::string name = fs::path(module.path).filename().string().substr(0, kLongestName);
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("-_.+", c))
      c = '_';
  const uint64_t id = profile::file_hash(module.build_id, module.path);
  return fmt::format("{}-{:012x}.assay", name, id & 0xffff'ffff'ffff);
}

// Moves pieces of a profile into another one, which gets the modules that they need and no others.
class Mover {
public:
  Mover(const profile::Profile &from, profile::Profile &to)
      : from_(from), to_(to), code_values_(from.modules) {}

  // So many are to come.
  void reserve(size_t instructions, size_t lists) {
    to_.values.instructions.reserve(instructions);
    to_.values.values.reserve(lists);
  }

  void move(const OfModule &pieces) {
    for (const profile::SampledInstruction *each : pieces.instructions) {
      to_.values.instructions.push_back(*each);
      use(to_.values.instructions.back().module);
    }
    for (profile::SampledValues *each : pieces.lists) {
      const profile::SampledValues &moved = to_.values.values.emplace_back(std::move(*each));
      use(to_.values.values.back().module);
      // Places in code are told by their modules.
      if (moved.kind == ASSAY_VALUE_target || moved.kind == ASSAY_VALUE_caller)
        for (const profile::HotEntry &entry : moved.hotlist.entries())
          for (uint32_t module : code_values_.modules_of(entry.value)) {
            profile::ModuleId named{module};
            use(named);
          }
    }
    for (const profile::MemoryConflict *each : pieces.conflicts) {
      to_.values.conflicts.push_back(*each);
      use(to_.values.conflicts.back().store_module);
      use(to_.values.conflicts.back().load_module);
    }
  }

  // The process, with the modules that are there.
  profile::Process process(const profile::Process &process) const {
    profile::Process copy = process;
    copy.mappings.clear();
    for (uint32_t i = 0; i < to_.modules.size(); i++)
      copy.mappings.push_back({profile::ModuleId{i}, 0, 0, 0, 0, {}});
    return copy;
  }

private:
  void use(profile::ModuleId &id) {
    if (!id.known())
      return;
    auto [known, is_new] = numbers_.try_emplace(id.v, static_cast<uint32_t>(to_.modules.size()));
    if (is_new)
      to_.modules.push_back(from_.modules[id.v]);
    id.v = known->second;
  }

  const profile::Profile &from_;
  profile::Profile &to_;
  profile::CodeValues code_values_;
  std::map<uint32_t, uint32_t> numbers_;
};

void canonize(profile::Profile &profile) {
  profile::Assembler assembler;
  assembler.add(std::move(profile));
  profile = assembler.finish();
}

// One process for each way of sampling, that has sampled as long as all of them together: else a
// file would grow by one every minute.
void join_processes(profile::Profile &profile) {
  std::vector<profile::Process> joined;
  for (profile::Process &each : profile.processes) {
    auto is_same = [&](const profile::Process &other) {
      if (!each.sampling || !other.sampling)
        return false;
      profile::Sampling a = *each.sampling, b = *other.sampling;
      a.duration_us = b.duration_us = 0;
      return a == b && each.machine == other.machine;
    };
    auto known = std::find_if(joined.begin(), joined.end(), is_same);
    if (known == joined.end()) {
      joined.push_back(std::move(each));
      continue;
    }
    if (auto &sum = known->sampling; sum && each.sampling)
      sum->duration_us += each.sampling->duration_us;
    known->start_unix_ns = std::min(known->start_unix_ns, each.start_unix_ns);
    known->ends = std::max(known->ends, each.ends);
    known->mappings.insert(known->mappings.end(), each.mappings.begin(), each.mappings.end());
    std::sort(known->mappings.begin(), known->mappings.end());
    known->mappings.erase(std::unique(known->mappings.begin(), known->mappings.end()),
                          known->mappings.end());
  }
  profile.processes = std::move(joined);
}

// In their order.
template <class Item, class Weight>
std::vector<Item *> heaviest(std::vector<Item> &items, size_t most, Weight weight) {
  std::vector<Item *> chosen;
  chosen.reserve(items.size());
  for (Item &item : items)
    chosen.push_back(&item);
  if (chosen.size() <= most)
    return chosen;
  std::nth_element(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(most), chosen.end(),
                   [&](const Item *a, const Item *b) {
                     return std::pair(weight(*b), a) < std::pair(weight(*a), b);
                   });
  chosen.resize(most);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// As cut_to(), but what is left is not in canonical order. False: nothing was to be cut.
bool cut(profile::Profile &profile, size_t lists, size_t instructions) {
  profile::Values &all = profile.values;
  if (all.values.size() <= lists && all.instructions.size() <= instructions &&
      all.conflicts.size() <= lists)
    return false;
  OfModule pieces;
  pieces.instructions = heaviest(all.instructions, instructions, [](const auto &each) {
    return std::pair(each.interrupts, each.executions);
  });
  pieces.lists =
      heaviest(all.values, lists, [](const auto &each) { return each.hotlist.windows(); });
  pieces.conflicts = heaviest(all.conflicts, lists, [](const auto &each) { return each.count; });
  uint64_t before = 0, after = 0;
  for (const profile::SampledValues &each : all.values)
    before += each.hotlist.values();
  profile::Profile rest;
  Mover mover(profile, rest);
  mover.reserve(pieces.instructions.size(), pieces.lists.size());
  mover.move(pieces);
  for (const profile::Process &process : profile.processes)
    rest.processes.push_back(mover.process(process));
  rest.losses = profile.losses;
  rest.values.samples = all.samples;
  rest.values.ends = all.ends;
  for (const profile::SampledValues &each : rest.values.values)
    after += each.hotlist.values();
  if (before > after)
    rest.losses[ASSAY_LOSS_many_places] += before - after;
  profile = std::move(rest);
  return true;
}

} // namespace

std::vector<ProfilePart> split_by_executable(profile::Profile whole,
                                             std::span<const ValueSums::Ends> ends) {
  std::vector<OfModule> of(whole.modules.size());
  for (auto &each : whole.values.instructions)
    of[each.module.v].instructions.push_back(&each);
  for (auto &each : whole.values.values)
    of[each.module.v].lists.push_back(&each);
  for (auto &each : whole.values.conflicts)
    of[each.load_module.v].conflicts.push_back(&each);
  std::map<std::string, std::vector<uint32_t>> files;
  for (uint32_t i = 0; i < of.size(); i++)
    if (!of[i].is_empty())
      files[file_of(whole.modules[i])].push_back(i);

  std::vector<ProfilePart> parts;
  profile::Profile rest;
  rest.processes = whole.processes;
  for (profile::Process &process : rest.processes)
    process.mappings.clear();
  rest.losses = whole.losses;
  rest.values.samples = whole.values.samples;
  rest.values.ends = whole.values.ends;
  for (const auto &[file, modules] : files) {
    ProfilePart &part = parts.emplace_back();
    part.file = file;
    Mover mover(whole, part.profile);
    size_t instructions = 0, lists = 0;
    for (uint32_t module : modules) {
      instructions += of[module].instructions.size();
      lists += of[module].lists.size();
    }
    mover.reserve(instructions, lists);
    for (uint32_t module : modules) {
      mover.move(of[module]);
      if (module >= ends.size())
        continue;
      for (size_t i = 0; i < ends[module].size(); i++) {
        part.profile.values.ends[i] += ends[module][i];
        part.profile.values.samples += ends[module][i];
        rest.values.ends[i] -= ends[module][i];
        rest.values.samples -= ends[module][i];
      }
    }
    for (const profile::Process &process : whole.processes) {
      profile::Process copy = mover.process(process);
      if (copy.sampling)
        copy.sampling->scope = ASSAY_SAMPLING_PART;
      part.profile.processes.push_back(std::move(copy));
    }
    canonize(part.profile);
  }
  canonize(rest);
  parts.push_back({kSystemFile, std::move(rest)});
  return parts;
}

void cut_to(profile::Profile &profile, size_t lists, size_t instructions) {
  if (cut(profile, lists, instructions))
    canonize(profile);
}

// Both are moved, so that there are never two copies.
void add_up(profile::Profile &sum, profile::Profile part, size_t lists, size_t instructions) {
  cut(part, lists, instructions);
  if (sum.processes.empty()) {
    sum = std::move(part);
    canonize(sum);
    return;
  }
  profile::Assembler assembler;
  assembler.add(std::move(sum));
  assembler.add(std::move(part));
  sum = assembler.finish();
  join_processes(sum);
  cut_to(sum, lists, instructions);
}

} // namespace values
