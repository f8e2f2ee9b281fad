#include "analyze/fields_diff.h"

#include "base/stable_sort.h"

#include <algorithm>
#include <map>

namespace analyze {
namespace {

uint64_t change_of(const StructChange &row) {
  uint64_t a = row.old_side.accesses, b = row.new_side.accesses;
  return std::max(a, b) - std::min(a, b);
}

// Of two structs of one name the sizes and lines of the one with more accesses.
void add(StructChange::Side &side, const StructRow &row) {
  if (row.accesses() > side.accesses) {
    side.size = row.record.size;
    side.lines = row.advice.lines_before;
  }
  side.accesses += row.accesses();
}

} // namespace

FieldsDiff diff(const FieldsResult &older, const FieldsResult &newer) {
  std::map<std::string, StructChange> rows;
  for (const StructRow &row : older.structs)
    add(rows[row.record.name].old_side, row);
  for (const StructRow &row : newer.structs)
    add(rows[row.record.name].new_side, row);
  FieldsDiff diff;
  for (auto &[name, row] : rows) {
    row.name = name;
    // lines are of samples, which differ from run to run
    if (row.old_side.accesses != row.new_side.accesses || row.old_side.size != row.new_side.size)
      diff.rows.push_back(row);
  }
  base::stable_sort(diff.rows, [](auto &a, auto &b) { return change_of(a) > change_of(b); });
  diff.same = diff.rows.empty();
  return diff;
}

} // namespace analyze
