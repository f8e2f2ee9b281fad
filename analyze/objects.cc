// From groups of words to ranked rows.
//
// The problem: the runtime tells groups apart by call stack, because that is what it has; a person
// changes a line of source. The idea: groups whose owner is one line, and whose objects are of one
// type, size and place of their free, are one row; a global is the words between its symbol's ends.
// Rows are ranked by what their pattern costs: of each line that was used, the bytes that were not
// used with it, as often as they were not (AssayObjectSums::wasted_byte_samples).
//
// Refused: ranking by the share of unused words. A thousand unused words beside one that is used once cost nothing.

#include "analyze/objects.h"

#include "abi/tools.h"
#include "abi/word_encoding.h"
#include "analyze/measured.h"
#include "analyze/object_globals.h"
#include "analyze/place.h"
#include "analyze/regular_expression.h"
#include "base/sort_key.h"
#include "base/stable_hash.h"
#include "base/stable_sort.h"
#include "image/elf.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace analyze {
namespace {

std::string stable_id(const ObjectRow &row) {
  base::StableHash hash;
  auto add = [&hash](const std::string &text) { hash.add_text(text + '\0'); };
  auto add_stack = [&](const image::CallStack &frames) {
    for (const image::Frame &frame : frames)
      add(frame.linkage_name.empty() ? frame.function : frame.linkage_name);
  };
  add(row.kind);
  add(row.type);
  add(row.kind == "global" ? row.name : "");
  if (!row.alloc_stack.empty()) {
    const image::Frame &owner = row.alloc_stack[row.owner];
    add(fmt::format("{} {} {}:{}", owner.linkage_name, base_name(owner.function_file),
                    owner.line - owner.function_start_line, owner.column));
  }
  add_stack(row.free_stack);
  add(std::to_string(row.class_bytes));
  return fmt::format("{:016x}", hash.value());
}

ObjectWord word_of(const AssayWordCell &cell, uint64_t offset, uint64_t objects_here) {
  ObjectWord word;
  word.offset = offset;
  word.hotness = cell.hotness;
  word.accessed_share =
      objects_here ? std::min(1.0, double(cell.accessed) / double(objects_here)) : 0;
  word.again_share = cell.hotness ? double(cell.again) / double(cell.hotness) : 0;
  return word;
}

// A row is made once its groups are added up.
struct Gathered {
  ObjectRow row;
  profile::ObjectGroup sum;
};

void finish(Gathered &gathered) {
  ObjectRow &row = gathered.row;
  const profile::ObjectGroup &sum = gathered.sum;
  row.sums = sum.sums;
  row.unit_bytes = sum.unit_bytes();
  row.cell_bytes = row.unit_bytes * sum.cell_units;
  row.class_bytes = sum.class_bytes;
  const size_t shown =
      static_cast<size_t>((sum.sums.size_max + row.cell_bytes - 1) / row.cell_bytes);
  std::vector<AssayWordCell> cells = sum.cells;
  cells.resize(std::max(shown, cells.size()));
  for (size_t i = 0; i < cells.size(); i++)
    row.words.push_back(word_of(cells[i], i * row.cell_bytes, sum.sums.count * sum.cell_units));
  if (!sum.positions.empty()) {
    std::vector<AssayWordCell> positions = sum.positions;
    positions.resize(assay_line_positions(row.unit_bytes));
    for (size_t i = 0; i < positions.size(); i++)
      row.positions.push_back(
          word_of(positions[i], i * row.unit_bytes, sum.sums.units / positions.size()));
  }
}

// The groups of the heap and of the stack, by what a person would change.
std::vector<ObjectRow> group_rows(const profile::Profile &profile, image::Symbols &symbols,
                                  const Wrappers &wrappers) {
  using Key = std::tuple<uint32_t, uint32_t, std::string, std::string, uint32_t, profile::Origin,
                         std::string, uint64_t, uint32_t>;
  std::map<Key, Gathered> rows;
  for (const profile::ObjectGroup &group : profile.object_groups) {
    ObjectRow row;
    row.alloc_stack = frames_of(profile, group.stack, symbols);
    row.owner = owner(row.alloc_stack, wrappers);
    row.type = type_name(profile, group.type);
    const image::Frame &at = row.alloc_stack[row.owner];
    std::string free_place;
    if (group.free_stack.known()) {
      row.free_stack = frames_of(profile, group.free_stack, symbols);
      free_place = place(row.free_stack[owner(row.free_stack, wrappers)]);
    }
    const bool is_local = group.kind == ASSAY_OBJECT_STACK;
    row.kind = is_local ? "stack" : "heap";
    row.name = is_local ? row.type : place(at);
    if (is_local)
      row.type.clear();
    else if (is_scalar(row.type) && through_wrapper(row.alloc_stack, wrappers))
      row.type.clear();
    auto [known, is_new] = rows.try_emplace({group.kind, group.encoding, row.name + "\n" + row.type,
                                             at.module, at.column, group.origin, free_place,
                                             group.class_bytes, group.cell_units});
    Gathered &gathered = known->second;
    if (is_new) {
      gathered.row = std::move(row);
      gathered.sum = group;
    } else {
      gathered.row.contexts++;
      gathered.sum.add(group);
    }
  }
  std::vector<ObjectRow> result;
  result.reserve(rows.size());
  for (auto &[key, gathered] : rows) {
    finish(gathered);
    result.push_back(std::move(gathered.row));
  }
  return result;
}

bool keeps(const TextFilter &filter, const ObjectRow &row) {
  auto in = [&](const image::CallStack &frames) {
    return std::any_of(frames.begin(), frames.end(), [&](const image::Frame &frame) {
      return filter.keeps(frame.function) || filter.keeps(frame.module);
    });
  };
  return filter.keeps(row.name) || filter.keeps_type(row.type) || filter.keeps(row.module) ||
         in(row.alloc_stack) || in(row.free_stack);
}

void describe_run(ObjectsResult &result, const profile::Profile &profile) {
  result.losses = losses_of(profile, ASSAY_TOOL_objects);
  result.notes = notes_of(profile);
  result.programs = program_names(profile);
  result.modules = count_modules(profile, ASSAY_TOOL_objects);
  result.processes = profile.processes.size();
  if (!profile.processes.empty()) {
    result.process = profile.processes.front();
    result.program_build_id = program_build_id(profile, profile.processes.front());
  }
  std::set<uint32_t> encodings;
  bool is_first = true;
  for (const profile::Process &process : profile.processes) {
    if (!process.object_sampling)
      continue;
    const profile::ObjectSampling &sampling = *process.object_sampling;
    if (is_first) {
      result.mode = sampling.mode;
      result.time_unit = sampling.unit;
      result.interval = sampling.interval;
    }
    is_first = false;
    result.samples += sampling.samples;
    result.last_interval = std::max(result.last_interval, sampling.last_interval);
    encodings.insert(sampling.mode & ASSAY_WORDS_ENCODING);
  }
  if (encodings.size() > 1)
    result.notes.emplace_back("the processes measured words in different ways, so hotness does not "
                              "compare; look at their profiles one by one");
}

// What `new T[n]` keeps before the first element, where these have destructors: their number, in as many bytes as T
// is aligned to, eight at least.
bool may_be_cookie(const ObjectRow &row, uint64_t bytes) {
  const bool is_c = !row.alloc_stack.empty() && row.alloc_stack[row.owner].file.ends_with(".c");
  return !is_c && (bytes == 8 || bytes == 16 || bytes == 32 || bytes == 64);
}

// Where in its type an offset of the object lies. Nothing: no member of the type is there, as far as is known.
std::optional<uint64_t> offset_in_type(const ObjectRow &row, uint64_t offset) {
  const uint64_t size = row.layout->size, rest = row.sums.size_max % size;
  if (row.layout->flexible_array())
    return offset;
  if (row.sums.size_min % size != rest || (rest && !may_be_cookie(row, rest)) ||
      row.sums.size_max < size)
    return offset < size ? std::optional(offset) : std::nullopt;
  return offset < rest ? std::nullopt : std::optional((offset - rest) % size);
}

// What lies in [offset, offset + bytes) of the object: "key", "x, y"; empty if nothing is known of it.
std::string name_of_words(const ObjectRow &row, uint64_t offset, uint64_t bytes) {
  const std::optional<uint64_t> begin =
      row.layout->size ? offset_in_type(row, offset) : std::nullopt;
  if (!begin)
    return "";
  const image::Member *to_the_end = row.layout->flexible_array();
  std::string names;
  for (const image::Member &member : row.layout->members) {
    const uint64_t end = member.offset + std::max<uint64_t>(member.size, 1);
    if (!member.name.empty() && member.offset < *begin + bytes &&
        (*begin < end || &member == to_the_end))
      names += (names.empty() ? "" : ", ") + member.name;
  }
  return names;
}

// Definitions of the types that cost the most.
void find_layouts(ObjectsResult &result, const profile::Profile &profile) {
  constexpr size_t kMax = 64;
  std::set<std::string> names;
  for (const ObjectRow &row : result.rows)
    if (!row.type.empty() && names.size() < kMax)
      names.insert(row.type);
  for (const profile::Module &module : profile.modules)
    if (measured(module, ASSAY_TOOL_objects))
      result.layouts.add(module, names);
  for (ObjectRow &row : result.rows) {
    row.layout = result.layouts.of_objects(
        row.type, row.sums.size_min, row.sums.size_max,
        row.owner < row.alloc_stack.size() ? row.alloc_stack[row.owner].file : row.file);
    if (!row.layout)
      continue;
    if (row.is_array() && row.cell_bytes > ASSAY_WORD_BYTES)
      continue; // a cell may be of any of its members
    for (ObjectWord &word : row.words)
      word.name = name_of_words(row, word.offset, row.cell_bytes);
  }
}

} // namespace

double ObjectRow::used_share() const {
  return sums.units ? double(sums.used_units) / double(sums.units) : 1;
}

double ObjectRow::line_used_share() const {
  return sums.line_units ? double(sums.used_units) / double(sums.line_units) : 1;
}

bool ObjectRow::is_array() const {
  return layout && layout->size && !layout->flexible_array() && sums.size_max >= 2 * layout->size;
}

std::string object_kind_text(const ObjectRow &row) {
  if (row.kind == "global")
    return "the global `" + row.name + "`";
  if (row.kind == "stack")
    return "the local variable `" + row.name + "`";
  return (row.type.empty() ? "objects" : "`" + row.type + "` objects") + " from " + row.name;
}

std::span<const ObjectOrder> object_orders() {
  static constexpr ObjectOrder kOrders[] = {
      {"score", "Which objects waste the most of the cache?",
       [](const ObjectRow &row) { return double(row.score()); }},
      {"used", "Which objects use the least of their lines?",
       [](const ObjectRow &row) { return row.sums.used_units ? 1 - row.line_used_share() : 0; }},
      {"unused", "Which objects have the most bytes that nobody used, in lines that were?",
       [](const ObjectRow &row) { return double(row.unused_line_bytes()); }},
      {"hotness", "Which objects are used the most?",
       [](const ObjectRow &row) { return double(row.sums.hotness); }},
      {"bytes", "Which objects are the largest together?",
       [](const ObjectRow &row) { return double(row.sums.bytes); }},
      {"count", "Of which objects are there the most?",
       [](const ObjectRow &row) { return double(row.sums.count); }},
  };
  return kOrders;
}

const ObjectOrder &object_order(const std::string &key) {
  return base::chosen_order(object_orders(), key);
}

ObjectsResult objects(const profile::Profile &profile, image::Symbols &symbols,
                      const ObjectsQuery &query) {
  const TextFilter filter(query.filter);
  const ObjectOrder &order = object_order(query.sort);
  Wrappers wrappers = query.wrappers;
  find_wrappers(profile, symbols, wrappers);
  ObjectsResult result;
  result.filter = query.filter;
  describe_run(result, profile);
  std::vector<ObjectRow> rows = group_rows(profile, symbols, wrappers);
  for (ObjectRow &row : object_globals(profile, symbols))
    rows.push_back(std::move(row));
  double useful = 0;
  for (ObjectRow &row : rows) {
    assay_object_sums_add(&result.totals, &row.sums);
    useful += double(row.sums.hotness * row.unit_bytes);
    if (!keeps(filter, row)) {
      result.filtered_out++;
      continue;
    }
    row.id = stable_id(row);
    result.rows.push_back(std::move(row));
  }
  result.total_score = result.totals.wasted_byte_samples;
  if (useful + double(result.total_score) > 0)
    result.wasted_share = double(result.total_score) / (useful + double(result.total_score));
  base::stable_sort(result.rows, [&](const ObjectRow &a, const ObjectRow &b) {
    double of_a = order.rank(a), of_b = order.rank(b);
    return of_a != of_b ? of_a > of_b : a.name < b.name;
  });
  find_layouts(result, profile);
  find_object_findings(result);
  result.notes.insert(result.notes.end(), symbols.notes().begin(), symbols.notes().end());
  return result;
}

bool measures_objects(const profile::Profile &profile) {
  return std::any_of(profile.processes.begin(), profile.processes.end(),
                     [](auto &process) { return process.object_sampling.has_value(); });
}

std::string why_no_objects(const profile::Profile &profile) {
  if (profile.losses.count(ASSAY_LOSS_no_words) || profile.losses.count(ASSAY_LOSS_no_shadow))
    return "the words of objects could not be measured in this run: their shadow had no room; "
           "run the program without `ulimit -s unlimited`, `ulimit -v` and `setarch -L`, or build "
           "it with -fassay-shadow=dynamic";
  return "the words of objects were not measured in this profile; build the program with "
         "-fassay=objects, and run it again";
}

} // namespace analyze
