#include "analyze/fields_diff.h"

#include "base/stable_sort.h"

#include <algorithm>
#include <map>
#include <set>

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

using Fields = std::map<std::string, StructChange::Field>; // by name

// What one side has of a struct's name, which may be several records.
struct Records {
  Fields fields;
  std::set<uint64_t> hashes;
};

void add_fields(Records &records, const StructRow &row, uint64_t StructChange::Field::*reads,
                uint64_t StructChange::Field::*writes) {
  records.hashes.insert(row.record.hash);
  for (size_t leaf = 0; leaf < row.fields.size(); leaf++) {
    StructChange::Field &field = records.fields[row.field_names[leaf]];
    field.name = row.field_names[leaf];
    field.*reads += row.fields[leaf].reads;
    field.*writes += row.fields[leaf].writes;
  }
}

std::vector<StructChange::Field> differing(const Records &older, const Records &newer) {
  Fields fields = newer.fields;
  for (const auto &[name, was] : older.fields) {
    StructChange::Field &field = fields[name];
    field.name = name;
    field.old_reads = was.old_reads;
    field.old_writes = was.old_writes;
  }
  std::vector<StructChange::Field> changed;
  for (const auto &[name, field] : fields)
    if (!field.same())
      changed.push_back(field);
  base::stable_sort(changed, [](auto &a, auto &b) { return a.change() > b.change(); });
  return changed;
}

} // namespace

uint64_t StructChange::Field::change() const {
  auto apart = [](uint64_t a, uint64_t b) { return std::max(a, b) - std::min(a, b); };
  return apart(old_reads, new_reads) + apart(old_writes, new_writes);
}

FieldsDiff diff(const FieldsResult &older, const FieldsResult &newer) {
  std::map<std::string, StructChange> rows;
  std::map<std::string, Records> old_records, new_records;
  for (const StructRow &row : older.structs) {
    add(rows[row.record.name].old_side, row);
    add_fields(old_records[row.record.name], row, &StructChange::Field::old_reads,
               &StructChange::Field::old_writes);
  }
  for (const StructRow &row : newer.structs) {
    add(rows[row.record.name].new_side, row);
    add_fields(new_records[row.record.name], row, &StructChange::Field::new_reads,
               &StructChange::Field::new_writes);
  }
  FieldsDiff diff;
  for (auto &[name, row] : rows) {
    row.name = name;
    const Records &was = old_records[name], &is = new_records[name];
    row.members_moved = !was.hashes.empty() && !is.hashes.empty() && was.hashes != is.hashes;
    row.fields = differing(was, is);
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
