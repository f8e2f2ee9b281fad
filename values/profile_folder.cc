// The problem: a recording that never ends must not grow, and what it has found must be there
// however it ends. So sums are taken away from the recording every minute, split by executable, and
// added to files. Adding needs one file in memory at a time. One file for everything was refused:
// each round would read and write all of it, and what no longer runs could not be forgotten. Files
// are not forced to the disk (fsync): samples would be lost meanwhile; if the machine stops, the
// last minute may be.
//
// A lock on the folder itself keeps a second recording out; the kernel takes it back when this
// process ends, however it ends.

#include "values/profile_folder.h"

#include "abi/records.h"
#include "base/fail.h"
#include "base/stable_sort.h"
#include "profile/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <sys/file.h>
#include <unistd.h>

namespace values {
namespace {

namespace fs = std::filesystem;

const char *const kSystemFile = "system.assay";
const char *const kKernelFile = "kernel.assay";
const char *const kMadeCodeFile = "made-code.assay";
constexpr const char *kDamagedExtension = ".damaged"; // of files that could not be read
constexpr size_t kLongestName = 60;

// What one module has of a recording.
struct OfModule {
  std::vector<const profile::SampledInstruction *> instructions;
  std::vector<const profile::SampledValues *> lists;
  std::vector<const profile::MemoryConflict *> conflicts;
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

// Copies pieces of a profile into another one, which gets the modules that they need and no others.
class Copier {
public:
  Copier(const profile::Profile &from, profile::Profile &to) : from_(from), to_(to) {
    for (uint32_t i = 0; i < from.modules.size(); i++)
      by_code_value_.emplace(
          profile::code_value_file(from.modules[i].build_id, from.modules[i].path), i);
  }

  void copy(const OfModule &pieces) {
    for (const profile::SampledInstruction *each : pieces.instructions) {
      to_.values.instructions.push_back(*each);
      use(to_.values.instructions.back().module);
    }
    for (const profile::SampledValues *each : pieces.lists) {
      to_.values.values.push_back(*each);
      use(to_.values.values.back().module);
      // Places in code are told by their modules.
      if (each->kind == ASSAY_VALUE_target || each->kind == ASSAY_VALUE_caller)
        for (const profile::HotEntry &entry : each->hotlist.entries())
          if (auto known = by_code_value_.find(static_cast<uint16_t>(entry.value >> 48));
              known != by_code_value_.end()) {
            profile::ModuleId named{known->second};
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
  std::map<uint16_t, uint32_t> by_code_value_;
  std::map<uint32_t, uint32_t> numbers_;
};

void canonize(profile::Profile &profile) {
  profile::Assembler assembler;
  assembler.add(profile);
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

template <class Item, class Weight>
std::vector<const Item *> heaviest(const std::vector<Item> &items, size_t most, Weight weight) {
  std::vector<const Item *> chosen;
  chosen.reserve(items.size());
  for (const Item &item : items)
    chosen.push_back(&item);
  if (chosen.size() <= most)
    return chosen;
  base::stable_sort(chosen, [&](const Item *a, const Item *b) { return weight(*a) > weight(*b); });
  chosen.resize(most);
  return chosen;
}

uint64_t values_in(const fs::path &file) {
  uint64_t values = 0;
  try {
    for (const profile::SampledValues &each : profile::read({file.string()}).values.values)
      values += each.hotlist.values();
  } catch (const base::Failure &) { // a damaged file has none that could be lost
    return 0;
  }
  return values;
}

} // namespace

std::vector<ProfilePart> split_by_executable(const profile::Profile &whole,
                                             std::span<const ValueSums::Ends> ends) {
  std::vector<OfModule> of(whole.modules.size());
  for (const auto &each : whole.values.instructions)
    of[each.module.v].instructions.push_back(&each);
  for (const auto &each : whole.values.values)
    of[each.module.v].lists.push_back(&each);
  for (const auto &each : whole.values.conflicts)
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
    Copier copier(whole, part.profile);
    for (uint32_t module : modules) {
      copier.copy(of[module]);
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
      profile::Process copy = copier.process(process);
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

void cut_to(profile::Profile &profile, size_t lists) {
  const profile::Values &all = profile.values;
  // They are small, and without them it is not known where the time goes.
  const size_t instructions = 10 * lists;
  if (all.values.size() <= lists && all.instructions.size() <= instructions &&
      all.conflicts.size() <= lists)
    return;
  OfModule pieces;
  pieces.instructions = heaviest(all.instructions, instructions, [](const auto &each) {
    return std::pair(each.interrupts, each.executions);
  });
  pieces.lists =
      heaviest(all.values, lists, [](const auto &each) { return each.hotlist.windows(); });
  pieces.conflicts = heaviest(all.conflicts, lists, [](const auto &each) { return each.count; });
  profile::Profile cut;
  Copier copier(profile, cut);
  copier.copy(pieces);
  for (const profile::Process &process : profile.processes)
    cut.processes.push_back(copier.process(process));
  cut.losses = profile.losses;
  cut.values.samples = all.samples;
  cut.values.ends = all.ends;
  uint64_t before = 0, after = 0;
  for (const profile::SampledValues &each : all.values)
    before += each.hotlist.values();
  for (const profile::SampledValues &each : cut.values.values)
    after += each.hotlist.values();
  if (before > after)
    cut.losses[ASSAY_LOSS_many_places] += before - after;
  canonize(cut);
  profile = std::move(cut);
}

ProfileFolder::ProfileFolder(std::string folder, uint64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    base::fail("{}: the folder for profiles cannot be made: {}; choose another one with -o",
               folder_, error.message());
  lock_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0 || access(folder_.c_str(), W_OK) != 0)
    base::fail("{}: this folder cannot be written: {}; choose another one with -o", folder_,
               std::strerror(errno));
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0)
    base::fail("{}: another recording writes to this folder; end it, or choose another one with -o",
               folder_);
}

ProfileFolder::~ProfileFolder() {
  if (lock_ >= 0)
    close(lock_);
}

std::string ProfileFolder::add(const ProfilePart &part) {
  const fs::path file = fs::path(folder_) / part.file, unfinished = file.string() + ".unfinished",
                 aside = file.string() + kDamagedExtension;
  profile::Profile sum = part.profile;
  std::string said;
  std::error_code error;
  if (fs::exists(file, error)) {
    try {
      profile::merge(sum, profile::read({file.string()}));
    } catch (const base::Failure &failure) {
      fs::rename(file, aside, error);
      if (error)
        base::fail("{}: cannot be renamed: {}", file.string(), error.message());
      said =
          fmt::format("{}; it is {} now, and a new one is begun", failure.what(), aside.string());
    }
  }
  join_processes(sum);
  if (part.file == kSystemFile && removed_values_)
    sum.losses[ASSAY_LOSS_many_places] += removed_values_;
  cut_to(sum, kMaxLists);
  profile::write(sum, unfinished.string());
  fs::rename(unfinished, file, error);
  if (error)
    base::fail("{}: cannot be written: {}", file.string(), error.message());
  if (part.file == kSystemFile)
    removed_values_ = 0;
  return said;
}

unsigned ProfileFolder::remove_oldest() {
  struct File {
    fs::path path;
    fs::file_time_type time;
    uint64_t bytes;
  };
  std::vector<File> files;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator each(folder_, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code gone;
    const uint64_t size = each->file_size(gone);
    if (gone ||
        (each->path().extension() != ".assay" && each->path().extension() != kDamagedExtension))
      continue;
    const uint64_t on_disk = (size + 4095) / 4096 * 4096;
    bytes += on_disk;
    if (each->path().filename() != kSystemFile)
      files.push_back({each->path(), each->last_write_time(gone), on_disk});
  }
  base::stable_sort(files, [](const File &a, const File &b) { return a.time < b.time; });
  unsigned removed = 0;
  for (const File &file : files) {
    if (bytes <= max_bytes_)
      break;
    removed_values_ += values_in(file.path);
    if (fs::remove(file.path, error)) {
      bytes -= file.bytes;
      removed++;
    }
  }
  return removed;
}

} // namespace values
