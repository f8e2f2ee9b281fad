// From contexts to ranked rows.
//
// The problem: a context is a stack of addresses and a block of sums; a person asks "what should I
// change?". The idea: name each context once (frames, owner, stable id), sum the same blocks by
// site (owner and type), by type and by module, and leave each question to a ranking function over
// the sums. So a new question is one line in a table, and every table shows the same numbers.
// People are shown sites: the thousand ways that lead to one line are one thing to change.
//
// A stable id hashes what survives a rebuild of the same source: linkage names, lines relative to
// the start of their function, columns, and the type's name. Where debug info is missing, offsets
// within the module stand in, and the id changes when the module is rebuilt; that is the price of
// having none.
//
// Joining freed and live blocks does not bridge: live objects are not in time order with freed
// ones.

#include "analyze/heap.h"
#include "analyze/measured.h"

#include "analyze/ownership.h"
#include "analyze/regular_expression.h"
#include "base/fail.h"
#include "base/stable_hash.h"
#include "base/stable_sort.h"
#include "image/elf.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <sstream>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace analyze {
namespace {

constexpr uint64_t kFineBlockBytes = 32; // ASSAY_COUNTERS_FINE

class ContextHash {
public:
  void add(std::string_view text) {
    hash_.add_text(text);
    hash_.add(0x100); // no byte of a text
  }
  void add(uint64_t number) {
    for (int byte = 0; byte < 8; byte++)
      hash_.add(number >> (8 * byte) & 0xff);
  }
  std::string text() const { return fmt::format("{:016x}", hash_.value()); }

private:
  base::StableHash hash_;
};

std::string stable_id(const HeapContextRow &row) {
  ContextHash hash;
  for (const image::Frame &frame : row.frames) {
    if (frame.linkage_name.empty()) {
      hash.add(frame.function); // module+0xoffset
      continue;
    }
    hash.add(frame.linkage_name);
    if (frame.line) {
      hash.add(uint64_t{frame.line} - frame.function_start_line);
      hash.add(uint64_t{frame.column});
    } else {
      hash.add(frame.address);
    }
  }
  hash.add(row.type);
  if (row.origin != kMallocOrigin)
    hash.add(row.origin);
  return hash.text();
}

// A module that was built for another tool alone counts no accesses.
bool counts(const profile::Module &module) {
  return measured(module, ASSAY_TOOL_heap);
}

bool allocated_by_instrumented(const profile::Profile &profile, profile::StackId stack) {
  const auto &frames = profile.stack(stack).frames;
  return !frames.empty() && frames.front().module.known() &&
         counts(profile.modules[frames.front().module.v]);
}

std::string origin_name(const profile::Origin &origin) {
  switch (origin.kind) {
  case 0: return kMallocOrigin;
  case ASSAY_ORIGIN_MMAP: return "mmap";
  default: return "pool " + origin.name;
  }
}

// The frame that recurs may be one of several inlined ones: the function is the one that has the code.
RecursionRow recursion_of(const profile::Profile &profile, const profile::HeapContext &context,
                          image::Symbols &symbols) {
  const profile::Recursion &r = context.recursion;
  const auto &frames = profile.stack(context.stack).frames;
  if (r.count == 0 || r.frame >= frames.size())
    return {};
  const profile::CodeLocation &location = frames[r.frame];
  const auto &inlined = symbols.call(
      location.module.known() ? location.module.v : image::Symbols::kNoModule, location.offset);
  if (inlined.empty())
    return {};
  return {(*std::prev(inlined.end())).function, r.count, r.levels, r.min, r.max};
}

class Filter {
public:
  explicit Filter(const std::string &text) : text_(text) {}
  bool keeps(const HeapContextRow &row) const {
    return text_.keeps_type(row.type) || text_.keeps(row.origin) || keeps(row.frames);
  }
  bool keeps(const EventRow &row) const { return text_.keeps(row.name) || keeps(row.frames); }
  bool keeps(const GlobalRow &row) const {
    return text_.keeps(row.name) || text_.keeps(row.module);
  }

private:
  bool keeps(const image::CallStack &frames) const {
    return std::any_of(frames.begin(), frames.end(), [&](const image::Frame &frame) {
      return text_.keeps(frame.function) || text_.keeps(frame.module);
    });
  }

  TextFilter text_;
};

std::vector<EventRow> events_of(const profile::Profile &profile, image::Symbols &symbols,
                                const Filter &filter, const Wrappers &wrappers) {
  std::vector<EventRow> rows;
  for (const profile::Event &event : profile.events) {
    EventRow row{event.name, frames_of(profile, event.stack, symbols), 0, event.count,
                 event.weight};
    row.owner = owner(row.frames, wrappers);
    if (filter.keeps(row))
      rows.push_back(std::move(row));
  }
  base::stable_sort(rows, [](const EventRow &a, const EventRow &b) {
    return std::tie(a.name, b.weight, b.count) < std::tie(b.name, a.weight, a.count);
  });
  return rows;
}

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

// In place, each row moved once: rows are more than a kilobyte, and two vectors of them were the most
// memory that the command ever had.
void sort_by_id(std::vector<HeapContextRow> &rows) {
  std::vector<size_t> order(rows.size()); // the row for each place
  std::iota(order.begin(), order.end(), size_t{0});
  base::stable_sort(order, [&](size_t a, size_t b) { return rows[a].id < rows[b].id; });
  for (size_t start = 0; start < rows.size(); start++) {
    if (order[start] == start)
      continue;
    HeapContextRow first = std::move(rows[start]);
    size_t place = start;
    while (order[place] != start) {
      rows[place] = std::move(rows[order[place]]);
      place = std::exchange(order[place], place);
    }
    rows[place] = std::move(first);
    order[place] = place;
  }
}

void most_objects_first(std::vector<FreeSite> &places) {
  base::stable_sort(places, [](const FreeSite &a, const FreeSite &b) { return a.count > b.count; });
}

// One line of the source may be in several programs: there it is one site.
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

// Where the types that hold the most are defined, from the debug info of instrumented modules.
void find_layouts(std::vector<HeapGroupRow> &types, const profile::Profile &profile) {
  constexpr size_t kMax = 64;
  std::set<std::string> names;
  for (const HeapGroupRow &type : types)
    if (!type.name.empty() && names.size() < kMax)
      names.insert(type.name);
  for (const profile::Module &module : profile.modules) {
    bool declares = std::any_of(module.types.begin(), module.types.end(), [&](profile::TypeId id) {
      return names.count(profile.types[id.v].name) != 0;
    });
    if (!declares ||
        image::check_presence(module.path, module.build_id).presence != image::Presence::same)
      continue;
    auto layouts = image::struct_layouts(module.path, names);
    for (HeapGroupRow &type : types) {
      auto layout = layouts.find(type.name);
      if (layout == layouts.end() || type.has_layout)
        continue;
      type.has_layout = true;
      type.size = layout->second.size;
      type.file = layout->second.file;
      type.line = layout->second.line;
      type.hole_bytes = layout->second.hole_bytes();
    }
  }
}

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

// Libraries of the system make allocations on behalf of their callers and cannot be rebuilt by
// whoever reads this; a module counts only where it owns an allocation.
void describe_coverage(HeapResult &result, const profile::Profile &profile) {
  result.measured = profile.processes.empty() || measured(profile, ASSAY_TOOL_heap);
  std::set<std::string> plain, found;
  for (const profile::Module &module : profile.modules)
    if (!counts(module) && module.path.starts_with('/'))
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
        image::check_presence(module.path, module.build_id).presence == image::Presence::same)
      result.nameless_modules.push_back(module.path);
  }
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

} // namespace

namespace {
std::string with_column(std::string text, const HeapContextRow &row) {
  const image::Frame &owner = row.owner_frame();
  return row.shares_line && owner.line ? text + fmt::format(":{}", owner.column) : text;
}
} // namespace

std::string place(const HeapContextRow &row) {
  return with_column(place(row.owner_frame()), row);
}

std::string brief_place(const HeapContextRow &row) {
  return with_column(brief_place(row.owner_frame()), row);
}

std::string site_of(const HeapContextRow &row) {
  constexpr std::string_view kPool = "pool ";
  std::string site = place(row.owner_frame());
  if (row.origin.starts_with(kPool))
    site += " (" + row.origin.substr(kPool.size()) + ")";
  return site;
}

bool HeapContextRow::type_is_struct() const {
  return !type.empty() && !is_scalar(type);
}

bool counts_accesses(const profile::Profile &profile) {
  return std::any_of(profile.modules.begin(), profile.modules.end(), counts) &&
         !profile.losses.count(ASSAY_LOSS_no_shadow);
}

namespace {

// An executable may have object files that were not built with assay-cc, of an archive for example. A context is of one
// if the source of the function that allocates is none of the module's units, and nothing from there was accessed. Not
// if it is a header, which is of any unit; a source that another one includes is told by its accesses.
class OtherUnits {
public:
  using Source = std::pair<uint32_t, std::string>; // module, and its name without folder and ending

  explicit OtherUnits(const profile::Profile &profile) : profile_(profile) {
    for (uint32_t module = 0; module < profile.modules.size(); module++)
      for (const profile::Unit &unit : profile.modules[module].units)
        counted_.insert({module, stem(unit.source)});
  }

  // The source of a context; no name where it is not known, or a header.
  Source note(const profile::HeapContext &context, const HeapContextRow &row) {
    Source source = source_of(context, row);
    if (row.sums.accesses())
      counted_.insert(source);
    return source;
  }
  // After all were noted.
  bool has(const Source &source) const {
    return !source.second.empty() && !profile_.modules[source.first].units.empty() &&
           !counted_.count(source);
  }

private:
  static std::string stem(const std::filesystem::path &path) { return path.stem().string(); }
  Source source_of(const profile::HeapContext &context, const HeapContextRow &row) const {
    auto frame = std::find_if(row.frames.begin(), row.frames.end(),
                              [](const Frame &each) { return !each.inlined; });
    if (!row.accesses_counted || frame == row.frames.end())
      return {};
    const std::string ending = std::filesystem::path(frame->file).extension().string();
    if (!ending.starts_with(".c") && !ending.starts_with(".C"))
      return {};
    return {profile_.stack(context.stack).frames.front().module.v, stem(frame->file)};
  }

  const profile::Profile &profile_;
  std::set<Source> counted_; // units, and what else has accesses
};

} // namespace

HeapResult heap(const profile::Profile &profile, image::Symbols &symbols, const HeapQuery &query) {
  Filter filter(query.filter);
  Suppressions suppressions = query.suppressions;
  Wrappers wrappers = query.wrappers;
  find_wrappers(profile, symbols, wrappers);
  HeapResult result;
  result.filter = query.filter;
  if (query.filter.empty())
    result.contexts.reserve(profile.heap.size());
  describe_run(result, profile);
  OtherUnits other_units(profile);
  std::vector<OtherUnits::Source> sources; // of the result's rows
  for (const profile::HeapContext &context : profile.heap) {
    HeapContextRow row;
    row.sums = sums_of(context);
    row.frames = frames_of(profile, context.stack, symbols);
    row.stack_cut = profile.stack(context.stack).cut;
    row.owner = owner(row.frames, wrappers);
    row.accesses_counted = allocated_by_instrumented(profile, context.stack);
    OtherUnits::Source source = other_units.note(context, row);
    row.recursion = recursion_of(profile, context, symbols);
    row.type = type_name(profile, context.type);
    row.origin = origin_name(context.origin);
    row.type_size = context.type.known() ? profile.types[context.type.v].size : 0;
    if (is_scalar(row.type) && through_wrapper(row.frames, wrappers))
      row.type.clear(), row.type_size = 0;
    result.whole.add(row.sums);
    if (!filter.keeps(row)) {
      result.filtered_out++;
      continue;
    }
    row.id = stable_id(row);
    if (row.sums.live.alloc_count && suppressions.match(row.frames)) {
      row.suppressed = true;
      row.sums.suppressed_count = row.sums.live.alloc_count;
      row.sums.suppressed_bytes = row.sums.live.size_total;
      result.suppressed_contexts++;
    }
    for (const profile::HeapFreedAt &place : context.freed_at) {
      FreeSite freed{frames_of(profile, place.stack, symbols), 0, place.count, place.bytes};
      freed.owner = owner(freed.frames, wrappers);
      row.freed_at.push_back(std::move(freed));
    }
    most_objects_first(row.freed_at);
    result.totals.add(row.sums);
    sources.push_back(std::move(source));
    result.contexts.push_back(std::move(row));
  }
  for (size_t i = 0; i < sources.size(); i++)
    if (other_units.has(sources[i]))
      result.contexts[i].accesses_counted = false;
  sort_by_id(result.contexts);
  result.suppressions = suppressions.patterns();
  result.suppressions_used = suppressions.patterns_used();
  std::set<std::string> executables;
  for (const profile::Process &process : profile.processes)
    executables.insert(process.executable);
  result.sites = sites_of(result.contexts, executables);
  result.types = group_by(result.contexts, [](const HeapContextRow &row) { return row.type; });
  result.modules =
      group_by(result.contexts, [](const HeapContextRow &row) { return row.owner_frame().module; });
  find_layouts(result.types, profile);
  describe_coverage(result, profile);
  describe_names(result, profile);
  result.globals = globals(profile, symbols, result.block_bytes);
  std::erase_if(result.globals, [&](const GlobalRow &row) { return !filter.keeps(row); });
  result.stacks = stacks(profile);
  result.events = events_of(profile, symbols, filter, wrappers);
  const auto &more = symbols.notes();
  result.notes.insert(result.notes.end(), more.begin(), more.end());
  find_heap_findings(result);
  return result;
}

} // namespace analyze
