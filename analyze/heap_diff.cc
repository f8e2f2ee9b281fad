// Places are matched by the owner's function and the type; where only one function of a name is gone and only one is
// new, its parameters or template arguments have changed. Context ids were refused as the key: they are the
// same in the next run of one program, but a changed caller, far up the stack, gives every context below it a
// new one, and a diff is for programs that were changed.

#include "analyze/heap_diff.h"

#include "analyze/place.h"
#include "base/stable_sort.h"

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
    HeapDiffRow &row = rows[{owner.function, site.type}];
    row.owner = owner;
    row.type = site.type;
    (row.*side).add(site.sums);
    row.*counted |= result.accesses_measured() && site.accesses_counted;
  }
}

void pair_changed_signatures(std::map<Key, HeapDiffRow> &rows) {
  struct Sides {
    std::vector<Key> gone, fresh;
  };
  std::map<Key, Sides> by_name; // without parameters
  for (const auto &[key, row] : rows) {
    const bool is_gone = row.new_sums.all.alloc_count == 0,
               is_new = row.old_sums.all.alloc_count == 0;
    if (is_gone != is_new) {
      Sides &sides = by_name[{short_name(key.first), key.second}];
      (is_gone ? sides.gone : sides.fresh).push_back(key);
    }
  }
  for (const auto &[name, sides] : by_name)
    if (sides.gone.size() == 1 && sides.fresh.size() == 1) {
      const HeapDiffRow &gone = rows[sides.gone.front()];
      HeapDiffRow &fresh = rows[sides.fresh.front()];
      fresh.old_sums = gone.old_sums;
      fresh.old_counted = gone.old_counted;
      rows.erase(sides.gone.front());
    }
}

bool equal(const HeapSums &a, const HeapSums &b, const HeapDiff &diff) {
  const bool same_accesses =
      !diff.accesses_measured ||
      (diff.reads_apart ? a.all.reads == b.all.reads && a.all.writes == b.all.writes
                        : a.accesses() == b.accesses());
  return a.all.alloc_count == b.all.alloc_count && a.all.size_total == b.all.size_total &&
         same_accesses && a.live.size_total == b.live.size_total;
}

std::vector<AccessChange> changed_globals(const HeapResult &older, const HeapResult &newer,
                                          bool reads_apart) {
  if (!older.globals_counted || !newer.globals_counted)
    return {};
  ChangesByName<AccessChange> changes;
  auto gather = [&](const HeapResult &result, AccessCounts AccessChange::*side) {
    for (const GlobalRow &row : result.globals) {
      AccessCounts &counts = side_of(changes, row.name, side);
      counts.reads += row.reads;
      counts.writes += row.writes;
    }
  };
  gather(older, &AccessChange::old_side);
  gather(newer, &AccessChange::new_side);
  auto change = [](const AccessChange &row) {
    return apart(row.old_side.accesses(), row.new_side.accesses());
  };
  auto changed = differing(changes, [&](const AccessChange &row) {
    return reads_apart ? row.old_side == row.new_side : change(row) == 0;
  });
  base::stable_sort(changed, [&](auto &a, auto &b) { return change(a) > change(b); });
  return changed;
}

std::vector<EventChange> changed_events(const HeapResult &older, const HeapResult &newer) {
  ChangesByName<EventChange> changes;
  auto gather = [&](const HeapResult &result, EventCounts EventChange::*side) {
    for (const EventRow &row : result.events) {
      EventCounts &counts = side_of(changes, row.name, side);
      counts.count += row.count;
      counts.weight += row.weight;
    }
  };
  gather(older, &EventChange::old_side);
  gather(newer, &EventChange::new_side);
  return differing(changes, [](const EventChange &row) { return row.old_side == row.new_side; });
}

double change(const HeapDiffRow &row) {
  return std::fabs(double(row.new_sums.all.size_total) - double(row.old_sums.all.size_total));
}

} // namespace

HeapDiff diff(const HeapResult &older, const HeapResult &newer) {
  std::map<Key, HeapDiffRow> rows;
  add(rows, older, &HeapDiffRow::old_sums, &HeapDiffRow::old_counted);
  add(rows, newer, &HeapDiffRow::new_sums, &HeapDiffRow::new_counted);
  pair_changed_signatures(rows);
  HeapDiff result;
  result.old_totals = older.totals;
  result.new_totals = newer.totals;
  result.old_peak_bytes = older.peak_live_bytes;
  result.new_peak_bytes = newer.peak_live_bytes;
  result.reads_apart = older.reads_apart && newer.reads_apart;
  result.accesses_measured = older.accesses_measured() && newer.accesses_measured();
  result.globals = changed_globals(older, newer, result.reads_apart);
  result.events = changed_events(older, newer);
  for (auto &[key, row] : rows)
    if (!equal(row.old_sums, row.new_sums, result))
      result.rows.push_back(std::move(row));
  std::sort(result.rows.begin(), result.rows.end(), [](const HeapDiffRow &a, const HeapDiffRow &b) {
    if (change(a) != change(b))
      return change(a) > change(b);
    return std::tie(a.owner.function, a.type) < std::tie(b.owner.function, b.type);
  });
  // The peak is the whole program's, whatever a filter keeps.
  result.same = result.rows.empty() && result.globals.empty() && result.events.empty() &&
                (!older.filter.empty() || older.peak_live_bytes == newer.peak_live_bytes);
  return result;
}

} // namespace analyze
