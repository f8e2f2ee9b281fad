// Objects are matched by the owner's function and the type, as in the diff of the heap: lines move
// when a program is changed, and sizes are what one changes.

#include "analyze/objects_diff.h"

#include "analyze/place.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace analyze {
namespace {

using Key = std::tuple<std::string, std::string, std::string>; // kind, function or variable, type
using Words =
    std::map<std::pair<uint64_t, uint64_t>, std::string>; // of a size class, at an offset: its name

void add(std::map<Key, ObjectChange> &rows, std::map<Key, Words> &used, const ObjectsResult &result,
         AssayObjectSums ObjectChange::*side) {
  for (const ObjectRow &row : result.rows) {
    const bool is_heap = row.kind == "heap";
    const std::string name = is_heap ? short_name(row.alloc_stack[row.owner].function) : row.name;
    const Key key = {row.kind, name, row.type};
    ObjectChange &change = rows[key];
    for (const ObjectWord &word : row.words)
      if (word.used())
        used[key].try_emplace({row.class_bytes, word.offset},
                              word.name.empty() ? fmt::format("+{}", word.offset) : word.name);
    change.kind = row.kind;
    if ((change.*side).count == 0) // the first one costs the most
      change.name = is_heap ? brief_place(row.alloc_stack[row.owner]) : row.name;
    change.type = row.type;
    change.unit_bytes = row.unit_bytes;
    assay_object_sums_add(&(change.*side), &row.sums);
  }
}

// Names of words that the first has and the second has not.
std::vector<std::string> without(const Words &words, const Words &others) {
  std::vector<std::string> names;
  for (const auto &[place, name] : words)
    if (!others.contains(place) && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

bool equal(const AssayObjectSums &a, const AssayObjectSums &b) {
  return a.count == b.count && a.bytes == b.bytes && a.used_units == b.used_units &&
         a.used_lines == b.used_lines && a.line_units == b.line_units;
}

uint64_t unused(const AssayObjectSums &sums) {
  return sums.line_units - sums.used_units;
}

uint64_t size_of_change(const ObjectChange &row) {
  uint64_t before = unused(row.old_sums), after = unused(row.new_sums);
  return (before > after ? before - after : after - before) * row.unit_bytes;
}

} // namespace

ObjectsDiff diff(const ObjectsResult &older, const ObjectsResult &newer) {
  std::map<Key, ObjectChange> rows;
  std::map<Key, Words> old_words, new_words;
  add(rows, old_words, older, &ObjectChange::old_sums);
  add(rows, new_words, newer, &ObjectChange::new_sums);
  ObjectsDiff result;
  result.old_totals = older.totals;
  result.new_totals = newer.totals;
  result.old_wasted_share = older.wasted_share;
  result.new_wasted_share = newer.wasted_share;
  if ((older.mode & ASSAY_WORDS_ENCODING) != (newer.mode & ASSAY_WORDS_ENCODING))
    result.notes.emplace_back("the runs measured words in different ways, so they do not compare");
  for (auto &[key, row] : rows) {
    if (row.old_sums.count && row.new_sums.count) {
      row.no_longer_used = without(old_words[key], new_words[key]);
      row.newly_used = without(new_words[key], old_words[key]);
    }
    if (!equal(row.old_sums, row.new_sums) || !row.no_longer_used.empty() ||
        !row.newly_used.empty())
      result.rows.push_back(std::move(row));
  }
  std::sort(
      result.rows.begin(), result.rows.end(), [](const ObjectChange &a, const ObjectChange &b) {
        uint64_t of_a = size_of_change(a), of_b = size_of_change(b);
        return of_a != of_b ? of_a > of_b
                            : std::tie(a.kind, a.name, a.type) < std::tie(b.kind, b.name, b.type);
      });
  result.same = result.rows.empty();
  return result;
}

} // namespace analyze
