#include "values/code_files.h"

#include "abi/published_code.h"
#include "base/fail.h"

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

CodeFiles::Opened *CodeFiles::open(const assay_miss &miss, ProcessMaps &maps) {
  auto [known, is_new] = opened_.try_emplace({miss.file, miss.device, miss.version});
  if (known->second && known->second->executable)
    return known->second.get();
  const MappedRange *range = maps.range_at(miss.pid, miss.address, ProcessMaps::kNow);
  if (!range || !range->is_file())
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
      file->index = static_cast<uint32_t>(files_.size());
      files_.push_back({name, file->executable->build_id()});
      break;
    } catch (const base::Failure &) {
      file->executable.reset();
    }
  }
  known->second = std::move(file);
  return known->second.get();
}

std::optional<CodePlace> CodeFiles::place_in(const MappedRange &range, uint64_t address) const {
  std::optional<CodePlace> found;
  for (const auto &[key, file] : opened_) {
    if (!file || !file->executable || files_[file->index].path != range.name)
      continue;
    const uint64_t offset = address - range.start + range.file_offset;
    const auto page = linked(*file->executable, assay_code_page_begin(offset));
    const bool is_same_file = key.file == range.inode; // not one that was there before
    if (page && (!found || is_same_file))
      found = CodePlace{file->index, *page + assay_offset_in_page(address)};
    if (page && is_same_file)
      break;
  }
  return found;
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
