// What to change about structs. A finding is made where the recorded windows say that another
// layout brings in fewer lines, or that a struct can be smaller; its size is computed from them.

#include "analyze/fields.h"
#include "analyze/place.h"
#include "base/shell_words.h"
#include "base/stable_sort.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace analyze {
namespace {

constexpr double kMinWeight = .005;  // of all accesses
constexpr uint64_t kMinChanges = 3;  // of the writer of a line
constexpr double kSureChanges = 100; // as many are no chance
constexpr size_t kMaxNames = 12;     // of members in a sentence

std::string names(const StructRow &row, const std::vector<size_t> &members,
                  const char *between = ", ") {
  std::string text;
  for (size_t i : members)
    text += (text.empty() ? "" : between) + row.members[i].name;
  return text;
}

// "BtCursor sqlite3.c:67649": folders tell a reader nothing new.
std::string place_of(const StructRow &row) {
  return row.record.name + " " + row.place();
}

// An order as a person can take it in; long ones are for programs, and in the JSON.
std::string order_text(const StructRow &row) {
  const std::vector<size_t> order = row.declared_order();
  const std::string command =
      row.declarations().names.empty()
          ? ""
          : fmt::format(": assay fields apply {} FILES", base::shell_word(row.record.name));
  if (order.size() <= kMaxNames)
    return names(row, order) + command;
  return fmt::format("{}, … ({} more; `assay fields --json` has them in `advice`)",
                     names(row, {order.begin(), order.begin() + ptrdiff_t{kMaxNames}}),
                     order.size() - kMaxNames) +
         command;
}

double share_of(const StructRow &row, const FieldsResult &result) {
  return double(row.accesses()) / double(std::max<uint64_t>(result.of_structs, 1));
}

std::string basis(const StructRow &row) {
  if (row.is_sampled && row.sampling.visits)
    return fmt::format("from {} to objects in {}", // one object is visited in many samples
                       base::format_counted(double(row.sampling.visits), "visit"),
                       base::format_counted(double(row.sampling.rounds), "sample"));
  return row.is_sampled ? "from " + base::format_counted(double(row.set_count), "sampled window")
                        : fmt::format("from {} of code that accesses it",
                                      base::format_counted(double(row.set_count), "execution"));
}

void find_order(const StructRow &row, const FieldsResult &result, std::vector<Finding> &to) {
  const LayoutAdvice &advice = row.advice;
  if (!advice.is_worth_it)
    return;
  const double lines = 1 - advice.lines_after / std::max(advice.lines_before, 1e-9);
  Finding finding;
  finding.gain = Gain::kLineUse;
  finding.location = place_of(row);
  finding.about.type = row.record.name;
  if (lines > .05) {
    finding.rule = "order";
    finding.message = fmt::format(
        "{}: fields that are used together lie apart; in another order an access touches "
        "{:.2f} lines instead of {:.2f}",
        row.record.name, advice.lines_after, advice.lines_before);
    finding.saves = {row.score * std::min(1.0, lines), "lines"};
    finding.weight = lines * share_of(row, result);
  } else {
    finding.rule = "padding";
    finding.message =
        fmt::format("{}: {} of its {} bytes {} that another order closes", row.record.name,
                    advice.size_before - advice.size_after, advice.size_before,
                    advice.size_before - advice.size_after == 1 ? "is a hole" : "are holes");
    finding.saves = {double(advice.size_before - advice.size_after), "bytes"};
    finding.weight = double(advice.size_before - advice.size_after) / double(advice.size_before) *
                     share_of(row, result);
  }
  finding.evidence = fmt::format("{}, {} of all accesses to fields, {}; size {} -> {} bytes",
                                 finding.location, base::format_share(share_of(row, result)),
                                 basis(row), advice.size_before, advice.size_after);
  finding.action =

      "declare the members in the order " + order_text(row);
  to.push_back(std::move(finding));
}

void find_split(const StructRow &row, const FieldsResult &result, std::vector<Finding> &to) {
  const LayoutAdvice &advice = row.advice;
  if (advice.cold.empty() || !advice.is_sweep)
    return;
  double saved = 1 - advice.lines_split / std::max(advice.lines_after, 1e-9);
  if (saved < .1)
    return;
  Finding finding;
  finding.rule = "split";
  finding.gain = Gain::kLineUse;
  finding.location = place_of(row);
  finding.about.type = row.record.name;
  finding.message = fmt::format(
      "{}: objects are walked through in a row, and {} of {} bytes are cold: in a record of "
      "their own they would cost {:.2f} lines an object less",
      row.record.name, advice.size_after - advice.size_split + 8, advice.size_after,
      advice.lines_after - advice.lines_split);
  finding.saves = {row.score * saved, "lines"};
  finding.weight = saved * share_of(row, result);
  finding.evidence = fmt::format("{}, {}", finding.location, basis(row));
  finding.action =
      fmt::format("move {} behind a pointer, or into a second array", names(row, advice.cold));
  to.push_back(std::move(finding));
}

// The member that a field is in.
std::string declared(const std::string &field) {
  return field.substr(0, field.find_first_of(".["));
}

// The pairs of fields of two records that share lines, most changes first: all within an object, or all of neighbours.
using SharedPairs = std::vector<const SharingRow *>;

uint64_t changes_of(const SharedPairs &pairs) {
  uint64_t changes = 0;
  for (const SharingRow *pair : pairs)
    changes += pair->count;
  return changes;
}

// Both fields belong to threads of their own; each write of one takes the line away from the other.
void find_sharing(const SharedPairs &pairs, std::vector<Finding> &to) {
  const SharingRow &row = *pairs.front();
  const uint64_t changes = changes_of(pairs);
  uint64_t most = 0;
  for (const SharingRow *pair : pairs)
    most += pair->most;
  if (changes < kMinChanges)
    return;
  Finding finding;
  finding.rule = "false_sharing";
  finding.gain = Gain::kLineTransfers;
  finding.location = fmt::format("{} {}:{}", row.record, row.file, row.line);
  finding.about.type = row.record;
  const bool same_field = row.record == row.other_record && row.field == row.other_field;
  const bool is_array = same_field && row.same_object;
  const std::string fields =
      is_array     ? fmt::format("elements of {}::{}", row.record, row.short_field)
      : same_field ? fmt::format("{}::{} of neighbours in memory", row.record, row.short_field)
                   : fmt::format("{}::{} and {}::{}", row.record, row.short_field, row.other_record,
                                 row.other_short_field);
  finding.about.members = fields;
  finding.message =
      is_array
          ? fmt::format("{} lie in one cache line, and two threads write different ones in turn",
                        fields)
          : fmt::format("{} lie in one cache line, and two threads write them in turn", fields);
  finding.saves = {double(std::max(most, changes)), "transfers"}; // writes that are not counted
  finding.weight = std::min(1.0, double(changes) / kSureChanges);
  finding.evidence =
      fmt::format("{}, {} changes of the writer in sampled windows, {}", finding.location,
                  row.count, row.same_object ? "in one object" : "in two objects");
  if (pairs.size() > 1)
    finding.evidence += fmt::format("; {} of other pairs of their fields", changes - row.count);
  finding.action = is_array ? "pad the element to 64 bytes, or give each thread an array of its own"
                   : row.same_object
                       ? fmt::format("put them into lines of their own: alignas(64) on {}",
                                     declared(row.other_short_field))
                       : "align the objects to 64 bytes, or give each thread an array of its own";
  to.push_back(std::move(finding));
}

} // namespace

void find_fields_findings(FieldsResult &result) {
  std::vector<Finding> found; // of equal weight the first come first
  std::map<std::tuple<std::string, std::string, bool>, SharedPairs> shared;
  for (const SharingRow &row : result.sharing)
    shared[{row.record, row.other_record, row.same_object}].push_back(&row);
  std::vector<SharedPairs> by_changes;
  for (const auto &[of, pairs] : shared)
    by_changes.push_back(pairs);
  base::stable_sort(by_changes, [](auto &a, auto &b) { return changes_of(a) > changes_of(b); });
  for (const SharedPairs &pairs : by_changes)
    find_sharing(pairs, found);
  for (const StructRow &row : result.structs) {
    if (is_of_standard_library(row.record.name))
      continue;
    find_order(row, result, found);
    find_split(row, result, found);
  }
  std::erase_if(found, [](const Finding &each) { return each.weight < kMinWeight; });
  base::stable_sort(found, [](auto &a, auto &b) { return a.weight > b.weight; });
  constexpr uint32_t kLosses[] = {ASSAY_LOSS_one_stripe};
  for (Finding &each : found)
    each.qualified_by = losses_among(result.losses, kLosses);
  result.findings = std::move(found);
}

} // namespace analyze
