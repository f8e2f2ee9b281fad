// Objects are matched by the owner's function and the type, as in the diff of the heap: lines move
// when a program is changed, and sizes are what one changes.

#include "analyze/objects_diff.h"

#include "analyze/place.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace analyze {
namespace {

using Key = std::tuple<std::string, std::string, std::string>; // kind, function or variable, type

void add(std::map<Key, ObjectChange> &rows, const ObjectsResult &result,
         AssayObjectSums ObjectChange::*side) {
  for (const ObjectRow &row : result.rows) {
    const bool is_heap = row.kind == "heap";
    const std::string name = is_heap ? short_name(row.alloc_stack[row.owner].function) : row.name;
    ObjectChange &change = rows[{row.kind, name, row.type}];
    change.kind = row.kind;
    if ((change.*side).count == 0) // the first one costs the most
      change.name = is_heap ? brief_place(row.alloc_stack[row.owner]) : row.name;
    change.type = row.type;
    change.unit_bytes = row.unit_bytes;
    assay_object_sums_add(&(change.*side), &row.sums);
  }
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
  add(rows, older, &ObjectChange::old_sums);
  add(rows, newer, &ObjectChange::new_sums);
  ObjectsDiff result;
  result.old_totals = older.totals;
  result.new_totals = newer.totals;
  result.old_wasted_share = older.wasted_share;
  result.new_wasted_share = newer.wasted_share;
  if ((older.mode & ASSAY_WORDS_ENCODING) != (newer.mode & ASSAY_WORDS_ENCODING))
    result.notes.emplace_back("the runs measured words in different ways, so they do not compare");
  for (auto &[key, row] : rows)
    if (!equal(row.old_sums, row.new_sums))
      result.rows.push_back(std::move(row));
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
