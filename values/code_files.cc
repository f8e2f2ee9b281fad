#include "values/code_files.h"

#include "abi/published_code.h"
#include "base/fail.h"
#include "base/stable_sort.h"
#include "values/code_key.h"

#include <sys/vfs.h>
#include <utility>

namespace values {
namespace {

// Of a hundred thousand functions they are most of what is known of a file. The parts that are no
// functions keep theirs.
void drop_names(image::Executable &executable) {
  std::vector<image::CodeRange> functions;
  functions.reserve(executable.functions().size());
  for (const image::CodeRange &function : executable.functions())
    functions.push_back({function.begin, function.end, is_cold_part(function) ? function.name : "",
                         function.found_by});
  executable.set_functions(std::move(functions));
}

// Whether the list of mappings gives files there other numbers than the kernel's own ones are.
bool is_overlay(const std::string &path) {
  constexpr long kOverlay = 0x794c7630; // OVERLAYFS_SUPER_MAGIC
  struct statfs system = {};
  return statfs(path.c_str(), &system) == 0 && system.f_type == kOverlay;
}

bool is_same(const timespec &a, const timespec &b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Whether its path leads to it still, and nobody has written to it: its key says neither.
bool is_unchanged(const CodeFiles::Opened &file) {
  const struct stat &then = file.status;
  struct stat now = {};
  return stat(file.file.path.c_str(), &now) == 0 && now.st_dev == then.st_dev &&
         now.st_ino == then.st_ino && now.st_size == then.st_size &&
         is_same(now.st_mtim, then.st_mtim) && is_same(now.st_ctim, then.st_ctim);
}

} // namespace

bool is_cold_part(const image::CodeRange &function) {
  return function.name.find(".cold") != std::string::npos;
}

uint32_t CodeFiles::named(const std::string &name) {
  auto [known, is_new] = named_.try_emplace(name, static_cast<uint32_t>(files_.size()));
  if (is_new)
    files_.push_back({name, {}});
  return known->second;
}

uint32_t CodeFiles::number(Opened &opened) {
  if (opened.index == kNone) {
    opened.index = static_cast<uint32_t>(files_.size());
    files_.push_back(opened.file);
  }
  return opened.index;
}

void CodeFiles::begin_anew(size_t most_kept) {
  std::vector<decltype(opened_)::iterator> stay;
  for (auto each = opened_.begin(); each != opened_.end();) {
    const Opened *file = each->second.get();
    if (file && file->executable && (file->uses || file->is_needed) && is_unchanged(*file))
      stay.push_back(each++);
    else
      each = opened_.erase(each);
  }
  base::stable_sort(stay, [](const auto &a, const auto &b) {
    return std::pair(a->second->is_needed, a->second->uses) >
           std::pair(b->second->is_needed, b->second->uses);
  });
  for (size_t i = 0; i < stay.size(); i++) {
    Opened &file = *stay[i]->second;
    if (i >= most_kept && !file.is_needed) {
      opened_.erase(stay[i]);
      continue;
    }
    file.index = kNone;
    file.uses = 0;
    file.is_needed = false;
  }
  files_.clear();
  named_.clear();
}

std::string CodeFiles::path_of_build(const CodeFile &file) const {
  const Opened *best = nullptr;
  for (const auto &[key, each] : opened_) {
    if (!each || each->file.build_id.empty() || each->file.build_id != file.build_id)
      continue;
    if ((!best || each->uses > best->uses) && is_unchanged(*each))
      best = each.get();
  }
  return best ? best->file.path : file.path;
}

CodeFiles::Opened *CodeFiles::use(const assay_code_key &key) {
  const auto known = opened_.find({key.file, key.device, key.version});
  if (known == opened_.end() || !known->second || !known->second->executable)
    return nullptr;
  known->second->uses++;
  number(*known->second);
  return known->second.get();
}

bool CodeFiles::is_mapped(const assay_miss &miss, const MappedRange &range) {
  return range.is_file() && (range.inode == miss.file || is_overlay(range.name) ||
                             is_overlay(path_of_mapping(miss.pid, range)));
}

CodeFiles::Opened *CodeFiles::open(const assay_miss &miss, ProcessMaps &maps) {
  if (Opened *file = use(key_of(miss)))
    return file;
  auto [known, is_new] = opened_.try_emplace({miss.file, miss.device, miss.version});
  const MappedRange *range = maps.range_at(miss.pid, miss.address, ProcessMaps::kNow);
  if (!range || !is_mapped(miss, *range))
    return known->second.get();
  auto file = std::make_unique<Opened>();
  std::string name = range->name;
  if (auto at = name.rfind(" (deleted)"); at != std::string::npos && at + 10 == name.size())
    name.resize(at);
  for (const std::string &path : {path_of_mapping(miss.pid, *range), range->name}) {
    try {
      file->executable = std::make_unique<image::Executable>(path);
      if (!keeps_callers_) {
        file->executable->drop_unwinding();
        drop_names(*file->executable);
      }
      file->file = {name, file->executable->build_id()};
      stat(path.c_str(), &file->status);
      file->uses = 1;
      number(*file);
      break;
    } catch (const base::Failure &) {
      file->executable.reset();
    }
  }
  known->second = std::move(file);
  return known->second.get();
}

std::optional<CodePlace> CodeFiles::place_in(const MappedRange &range, uint64_t address) {
  Opened *found = nullptr;
  uint64_t linked_page = 0;
  for (auto &[key, file] : opened_) {
    if (!file || !file->executable || file->file.path != range.name)
      continue;
    const uint64_t offset = address - range.start + range.file_offset;
    const auto page = linked(*file->executable, assay_code_page_begin(offset));
    const bool is_same_file = key.file == range.inode; // not one that was there before
    if (page && (!found || is_same_file)) {
      found = file.get();
      linked_page = *page;
    }
    if (page && is_same_file)
      break;
  }
  if (!found)
    return std::nullopt;
  return CodePlace{number(*found), linked_page + assay_offset_in_page(address)};
}

std::optional<uint64_t> CodeFiles::linked(const image::Executable &executable, uint64_t offset) {
  for (const image::Segment &segment : executable.segments()) {
    const uint64_t begin = assay_code_page_begin(segment.file_offset);
    if (segment.executable && offset >= begin && offset < segment.file_offset + segment.file_size)
      return segment.address - segment.file_offset + offset;
  }
  return std::nullopt;
}

} // namespace values
