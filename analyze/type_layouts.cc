#include "analyze/type_layouts.h"

#include "image/elf.h"

#include <algorithm>
#include <vector>

namespace analyze {
namespace {

bool fits(const image::StructLayout &layout, uint64_t min_size, uint64_t max_size) {
  if (layout.flexible_array())
    return min_size >= layout.size;
  return layout.size && min_size % layout.size == 0 && max_size % layout.size == 0;
}

} // namespace

void TypeLayouts::add(const profile::Module &module, const std::set<std::string> &names) {
  if (names.empty())
    return;
  const auto file = image::file_with(module.build_id, module.path, module.kept);
  if (!file)
    return;
  for (auto &[name, layout] : image::struct_layouts(*file, names)) {
    const auto [begin, end] = all_.equal_range(name);
    if (std::none_of(begin, end, [&](const auto &known) { return known.second.lies_like(layout); }))
      all_.emplace(name, layout);
  }
}

const image::StructLayout *TypeLayouts::only(const std::string &name) const {
  const auto known = all_.find(name);
  return all_.count(name) == 1 ? &known->second : nullptr;
}

const image::StructLayout *TypeLayouts::of_objects(const std::string &name, uint64_t min_size,
                                                   uint64_t max_size,
                                                   const std::string &file) const {
  if (all_.count(name) <= 1)
    return only(name);
  std::vector<const image::StructLayout *> left;
  const auto [begin, end] = all_.equal_range(name);
  for (auto each = begin; each != end; ++each)
    if (fits(each->second, min_size, max_size))
      left.push_back(&each->second);
  if (left.size() > 1)
    std::erase_if(left, [&](const auto *layout) { return layout->file != file; });
  return left.size() == 1 ? left.front() : nullptr;
}

} // namespace analyze
