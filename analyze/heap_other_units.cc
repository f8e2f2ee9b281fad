#include "analyze/heap_other_units.h"

#include <algorithm>
#include <filesystem>

namespace analyze {
namespace {

std::string stem(const std::filesystem::path &path) {
  return path.stem().string();
}

} // namespace

OtherUnits::OtherUnits(const profile::Profile &profile) : profile_(profile) {
  for (uint32_t module = 0; module < profile.modules.size(); module++)
    for (const profile::Unit &unit : profile.modules[module].units)
      counted_.insert({module, stem(unit.source)});
}

OtherUnits::Source OtherUnits::note(const profile::HeapContext &context,
                                    const HeapContextRow &row) {
  Source source = source_of(context, row);
  if (row.sums.accesses())
    counted_.insert(source);
  return source;
}

bool OtherUnits::has(const Source &source) const {
  return !source.second.empty() && !profile_.modules[source.first].units.empty() &&
         !counted_.count(source);
}

OtherUnits::Source OtherUnits::source_of(const profile::HeapContext &context,
                                         const HeapContextRow &row) const {
  auto frame = std::find_if(row.frames.begin(), row.frames.end(),
                            [](const Frame &each) { return !each.inlined; });
  if (!row.accesses_counted || frame == row.frames.end())
    return {};
  const std::string ending = std::filesystem::path(frame->file).extension().string();
  if (!ending.starts_with(".c") && !ending.starts_with(".C"))
    return {};
  return {profile_.stack(context.stack).frames.front().module.v, stem(frame->file)};
}

} // namespace analyze
