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

#include "analyze/heap_coverage.h"
#include "analyze/heap_groups.h"
#include "analyze/heap_other_units.h"
#include "analyze/measured.h"
#include "analyze/ownership.h"
#include "analyze/regular_expression.h"
#include "base/stable_hash.h"
#include "base/stable_sort.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace analyze {
namespace {

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

// Call stacks whose objects lived one after the other have peaks that add up to more than the program ever held.
void bound_peaks(HeapResult &result) {
  uint64_t most = result.peak_live_bytes;
  for (const HeapContextRow &context : result.contexts)
    most = std::max(most, context.sums.peak_bytes);
  auto bound = [most](auto &rows) {
    for (auto &row : rows)
      row.sums.peak_bytes = std::min(row.sums.peak_bytes, most);
  };
  bound(result.sites);
  bound(result.types);
  bound(result.modules);
}

bool allocated_by_instrumented(const profile::Profile &profile, profile::StackId stack) {
  const auto &frames = profile.stack(stack).frames;
  return !frames.empty() && frames.front().module.known() &&
         measured(profile.modules[frames.front().module.v], ASSAY_TOOL_heap);
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
  bound_peaks(result);
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

std::string why_no_heap(const profile::Profile &profile) {
  const bool is_only_sampled =
      std::ranges::all_of(profile.processes, [](const profile::Process &process) {
        return process.tools == ASSAY_TOOL_values;
      });
  if (!is_only_sampled)
    return kHeapNotMeasured;
  return std::string(kHeapNotMeasured) +
         "; without a build, `assay run --preload` records its allocations";
}

} // namespace analyze
