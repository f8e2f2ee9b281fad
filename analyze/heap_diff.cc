// Places are matched by the owner's function and the type. Context ids were refused as the key: they are the
// same in the next run of one program, but a changed caller, far up the stack, gives every context below it a
// new one, and a diff is for programs that were changed.

#include "analyze/heap_diff.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace analyze {
namespace {

using Key = std::pair<std::string, std::string>; // function, type

void add(std::map<Key, HeapDiffRow> &rows, const HeapResult &result, HeapSums HeapDiffRow::*side,
         bool HeapDiffRow::*counted) {
  for (const HeapContextRow &site : result.sites) {
    const image::Frame &owner = site.owner_frame();
    HeapDiffRow &row = rows[{short_name(owner.function), site.type}];
    row.owner = owner;
    row.type = site.type;
    (row.*side).add(site.sums);
    row.*counted |= result.accesses_measured() && site.accesses_counted;
  }
}

bool equal(const HeapSums &a, const HeapSums &b, bool with_accesses) {
  return a.all.alloc_count == b.all.alloc_count && a.all.size_total == b.all.size_total &&
         (!with_accesses || (a.all.reads == b.all.reads && a.all.writes == b.all.writes)) &&
         a.live.size_total == b.live.size_total;
}

double change(const HeapDiffRow &row) {
  return std::fabs(double(row.new_sums.all.size_total) - double(row.old_sums.all.size_total));
}

} // namespace

HeapDiff diff(const HeapResult &older, const HeapResult &newer) {
  std::map<Key, HeapDiffRow> rows;
  add(rows, older, &HeapDiffRow::old_sums, &HeapDiffRow::old_counted);
  add(rows, newer, &HeapDiffRow::new_sums, &HeapDiffRow::new_counted);
  HeapDiff result = {{},
                     older.totals,
                     newer.totals,
                     older.peak_live_bytes,
                     newer.peak_live_bytes,
                     older.reads_apart && newer.reads_apart,
                     older.accesses_measured() && newer.accesses_measured(),
                     false};
  for (auto &[key, row] : rows)
    if (!equal(row.old_sums, row.new_sums, result.accesses_measured))
      result.rows.push_back(std::move(row));
  std::sort(result.rows.begin(), result.rows.end(), [](const HeapDiffRow &a, const HeapDiffRow &b) {
    if (change(a) != change(b))
      return change(a) > change(b);
    return std::tie(a.owner.function, a.type) < std::tie(b.owner.function, b.type);
  });
  result.same = result.rows.empty();
  return result;
}

} // namespace analyze
