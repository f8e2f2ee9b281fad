// Rows are summed, never looked at again in the profile: so what is summed by site, by type and by module is the same,
// and each of them adds up to the whole.

#include "analyze/heap_groups.h"

#include "analyze/place.h"
#include "analyze/type_layouts.h"
#include "base/stable_sort.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace analyze {

std::vector<HeapGroupRow> group_by(const std::vector<HeapContextRow> &rows,
                                   std::string (*name_of)(const HeapContextRow &)) {
  std::map<std::string, HeapGroupRow> groups;
  for (const HeapContextRow &row : rows) {
    HeapGroupRow &group = groups[name_of(row)];
    group.contexts++;
    group.accesses_counted |= row.accesses_counted;
    group.sums.add(row.sums);
    group.size = std::max(group.size, row.type_size);
  }
  std::vector<HeapGroupRow> result;
  for (auto &[name, group] : groups) {
    group.name = name;
    result.push_back(std::move(group));
  }
  base::stable_sort(result, [](const HeapGroupRow &a, const HeapGroupRow &b) {
    return a.sums.all.size_total > b.sums.all.size_total;
  });
  return result;
}

void most_objects_first(std::vector<FreeSite> &places) {
  base::stable_sort(places, [](const FreeSite &a, const FreeSite &b) { return a.count > b.count; });
}

std::vector<HeapContextRow> sites_of(const std::vector<HeapContextRow> &contexts,
                                     const std::set<std::string> &executables) {
  using Text = std::string_view;
  using Key = std::tuple<Text, Text, Text, uint32_t, Text, Text, bool, uint32_t>;
  struct Site {
    const HeapContextRow *largest; // by bytes
    HeapSums sums;
    RecursionRow recursion;
    uint64_t contexts = 1;
    std::map<std::string, FreeSite> freed_at; // by the line that owns the free
  };
  std::map<Key, Site> sites;
  for (const HeapContextRow &context : contexts) {
    const image::Frame &owner = context.owner_frame();
    auto [known, is_new] =
        sites.try_emplace({executables.count(owner.module) ? *executables.begin() : owner.module,
                           owner.function, owner.file, owner.line, context.type, context.origin,
                           context.accesses_counted, owner.column});
    Site &site = known->second;
    site.recursion.add(context.recursion);
    if (is_new) {
      site.largest = &context;
      site.sums = context.sums;
    } else {
      if (context.sums.all.size_total > site.largest->sums.all.size_total)
        site.largest = &context;
      site.sums.add(context.sums);
      site.contexts++;
    }
    for (const FreeSite &place : context.freed_at) {
      auto [freed, first] = site.freed_at.try_emplace(analyze::place(place.owner_frame()), place);
      if (first)
        continue;
      freed->second.count += place.count;
      freed->second.bytes += place.bytes;
    }
  }
  std::vector<HeapContextRow> rows;
  rows.reserve(sites.size());
  // But for the column, neighbours in the map are equal where they share a line.
  auto line_of = [](const Key &key) {
    Key line = key;
    std::get<7>(line) = 0;
    return line;
  };
  for (auto at = sites.begin(); at != sites.end(); ++at) {
    Site &site = at->second;
    HeapContextRow &row = rows.emplace_back(*site.largest);
    auto next = std::next(at);
    row.shares_line =
        (at != sites.begin() && line_of(std::prev(at)->first) == line_of(at->first)) ||
        (next != sites.end() && line_of(next->first) == line_of(at->first));
    row.sums = site.sums;
    row.recursion = site.recursion;
    row.contexts = site.contexts;
    row.freed_at.clear();
    for (auto &[line, place] : site.freed_at)
      row.freed_at.push_back(std::move(place));
    most_objects_first(row.freed_at);
  }
  return rows;
}

void find_layouts(std::vector<HeapGroupRow> &types, const profile::Profile &profile) {
  constexpr size_t kMax = 64;
  std::set<std::string> names;
  for (const HeapGroupRow &type : types)
    if (!type.name.empty() && names.size() < kMax)
      names.insert(type.name);
  TypeLayouts layouts;
  for (const profile::Module &module : profile.modules) {
    bool declares = std::any_of(module.types.begin(), module.types.end(), [&](profile::TypeId id) {
      return names.count(profile.types[id.v].name) != 0;
    });
    if (declares)
      layouts.add(module, names);
  }
  for (HeapGroupRow &type : types)
    if (const image::StructLayout *layout = layouts.only(type.name)) {
      type.has_layout = true;
      type.size = layout->size;
      type.file = layout->file;
      type.line = layout->line;
      type.hole_bytes = layout->hole_bytes();
    }
}

} // namespace analyze
