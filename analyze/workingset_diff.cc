// Owners are matched by kind, type and name without its line, since lines move when a program is changed.
// Phases have no name of their own: the function and the owner that they are mostly about stand for one.
// Matching them in their order was refused: one more phase at the begin, and all others would differ.

#include "analyze/workingset_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace analyze {
namespace {

// "build at tree.cc:16 (pool nodes)" without " at tree.cc:16": lines move, and files are renamed.
std::string without_place(const std::string &name) {
  size_t at = name.rfind(" at "), colon = name.find(':', at == std::string::npos ? at : at + 4);
  if (at == std::string::npos || colon == std::string::npos)
    return name;
  size_t end = name.find_first_not_of("0123456789", colon + 1);
  return name.substr(0, at) + (end == std::string::npos ? "" : name.substr(end));
}

OwnerName place_of(const OwnerName &owner) {
  return {owner.kind, owner.kind == "heap" ? without_place(owner.name) : owner.name, owner.type};
}

double mean_length(const WorkingSetResult &result) {
  return double(result.length()) / double(result.snapshots.size());
}

WorkingSetSizes sizes_of(const WorkingSetResult &result) {
  return {result.mean_lines * double(result.line_bytes),
          result.bytes(result.snapshots[result.largest].lines), result.bytes(result.total_lines)};
}

using Owners = std::map<OwnerName, OwnerChange>;

void add(Owners &owners, const WorkingSetResult &result, OwnerChange::Side OwnerChange::*which) {
  for (const OwnerRow &row : result.owner_rows) {
    const OwnerName &owner = result.owners[row.owner];
    OwnerChange &change = owners[place_of(owner)];
    OwnerChange::Side &side = change.*which;
    if (side.mean_bytes == 0) // the first one has the most
      change.owner = owner;
    side.mean_bytes += row.mean_lines * double(result.line_bytes);
    side.most_bytes = std::max(side.most_bytes, result.bytes(row.most_lines));
  }
}

using Phases = std::map<std::pair<std::string, OwnerName>, PhaseChange>;

void add(Phases &phases, const WorkingSetResult &result, PhaseChange::Side PhaseChange::*which) {
  for (const Phase &phase : result.phases) {
    std::string function = phase.functions.empty() ? "" : phase.functions.front().first;
    OwnerName owner =
        phase.owners.empty() ? OwnerName() : result.owners[phase.owners.front().owner];
    PhaseChange &change = phases[{function, place_of(owner)}];
    change.function = function;
    change.owner = owner;
    double share = result.time_share(phase);
    PhaseChange::Side &side = change.*which;
    double sum = side.mean_bytes * side.time_share + double(result.bytes(phase.mean_lines)) * share;
    side.phases++;
    side.time_share += share;
    side.mean_bytes = side.time_share > 0 ? sum / side.time_share : 0;
  }
}

double change(const auto &row) {
  return std::fabs(row.new_side.mean_bytes - row.old_side.mean_bytes);
}

template <class Rows> auto differing(Rows &rows, double least) {
  std::vector<typename Rows::mapped_type> list;
  for (auto &[key, row] : rows)
    if (change(row) >= least)
      list.push_back(std::move(row));
  std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) {
    return change(a) != change(b) ? change(a) > change(b) : a.owner < b.owner;
  });
  return list;
}

} // namespace

WorkingSetDiff diff(const WorkingSetResult &older, const WorkingSetResult &newer) {
  constexpr double kMinChange = 1; // byte: less is rounding
  constexpr double kOtherLength = 1.5;
  WorkingSetDiff result;
  result.old_sizes = sizes_of(older);
  result.new_sizes = sizes_of(newer);
  Owners owners;
  add(owners, older, &OwnerChange::old_side);
  add(owners, newer, &OwnerChange::new_side);
  result.owners = differing(owners, kMinChange);
  Phases phases;
  add(phases, older, &PhaseChange::old_side);
  add(phases, newer, &PhaseChange::new_side);
  result.phases = differing(phases, kMinChange);
  result.same = result.owners.empty() && result.old_sizes == result.new_sizes;
  double a = mean_length(older), b = mean_length(newer);
  if (older.unit != newer.unit)
    result.notes.push_back("the snapshots were cut by different clocks; only what was ever touched "
                           "compares well");
  else if (a > kOtherLength * b || b > kOtherLength * a)
    result.notes.push_back(fmt::format("a snapshot lasts {} in the old run and {} in the new one; "
                                       "longer ones have more lines",
                                       clock_text(older.unit, static_cast<uint64_t>(a)),
                                       clock_text(newer.unit, static_cast<uint64_t>(b))));
  if (older.line_bytes != newer.line_bytes)
    result.notes.push_back(fmt::format("lines have {} bytes in the old run and {} in the new one",
                                       older.line_bytes, newer.line_bytes));
  return result;
}

} // namespace analyze
