#include "analyze/fields_diff.h"

#include "base/stable_sort.h"

#include <map>
#include <set>

namespace analyze {
namespace {

uint64_t change_of(const StructChange &row) {
  return apart(row.old_side.accesses, row.new_side.accesses);
}

// Of two structs of one name the sizes and lines of the one with more accesses.
void add(StructChange::Side &side, const StructRow &row) {
  if (row.accesses() > side.accesses) {
    side.size = row.record.size;
    side.lines = row.advice.lines_before;
  }
  side.accesses += row.accesses();
}

// What the records of one name have in both runs.
struct Records {
  ChangesByName<AccessChange> fields;
  std::set<uint64_t> old_hashes, new_hashes;
};

void add_fields(Records &records, const StructRow &row, std::set<uint64_t> Records::*hashes,
                AccessCounts AccessChange::*side) {
  (records.*hashes).insert(row.record.hash);
  for (size_t leaf = 0; leaf < row.fields.size(); leaf++) {
    AccessCounts &counts = side_of(records.fields, row.field_names[leaf], side);
    counts.reads += row.fields[leaf].reads;
    counts.writes += row.fields[leaf].writes;
  }
}

std::vector<AccessChange> changed_fields(const Records &records) {
  auto changed = differing(records.fields,
                           [](const AccessChange &row) { return row.old_side == row.new_side; });
  auto change = [](const AccessChange &row) {
    return apart(row.old_side.reads, row.new_side.reads) +
           apart(row.old_side.writes, row.new_side.writes);
  };
  base::stable_sort(changed, [&](auto &a, auto &b) { return change(a) > change(b); });
  return changed;
}

} // namespace

FieldsDiff diff(const FieldsResult &older, const FieldsResult &newer) {
  std::map<std::string, StructChange> rows;
  std::map<std::string, Records> all_records;
  for (const StructRow &row : older.structs) {
    add(rows[row.record.name].old_side, row);
    add_fields(all_records[row.record.name], row, &Records::old_hashes, &AccessChange::old_side);
  }
  for (const StructRow &row : newer.structs) {
    add(rows[row.record.name].new_side, row);
    add_fields(all_records[row.record.name], row, &Records::new_hashes, &AccessChange::new_side);
  }
  FieldsDiff diff;
  for (auto &[name, row] : rows) {
    row.name = name;
    const Records &records = all_records[name];
    row.members_moved = !records.old_hashes.empty() && !records.new_hashes.empty() &&
                        records.old_hashes != records.new_hashes;
    row.fields = changed_fields(records);
    // lines are of samples, which differ from run to run
    if (row.old_side.accesses != row.new_side.accesses || row.old_side.size != row.new_side.size ||
        row.members_moved || !row.fields.empty())
      diff.rows.push_back(row);
  }
  base::stable_sort(diff.rows, [](auto &a, auto &b) { return change_of(a) > change_of(b); });
  diff.same = diff.rows.empty();
  return diff;
}

} // namespace analyze
