// Two recordings of the same program differ in every number, because both are samples. So a place
// is compared only if both have 30 samples there, and a change counts only if the intervals do not
// touch after they were widened: many places are compared, and some would differ by chance.
//
// Where one value gives way to another, both shares change by as much. So a list reports one value:
// that with the largest product of its change and its larger share. A value that one of the
// hotlists lacks may still have come there: its share is taken to be at most 1 %, or a larger bound
// where the samples are few.
//
// A value does not say whether it is an address of memory. What is 2^39 or more, up or down from
// zero, and has no name, is taken for one.

#include "analyze/values_diff.h"

#include "analyze/frame.h"
#include "base/stable_sort.h"
#include "profile/hotlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace analyze {
namespace {

constexpr uint64_t kFewSamples = 30;
constexpr double kWider = 1.5;     // of intervals: many places are compared
constexpr double kMinChange = .05; // of a share of values
constexpr double kMinTime = .01;   // of a function's share of time

struct Side {
  const ValueFunction *function;
  const ValueInstruction *instruction;
  const ValueList *list;
};
// File, function, place or text with number, kind, subject.
using Key = std::tuple<std::string, std::string, std::string, unsigned, std::string>;

constexpr const char *kProgram = "(program)"; // stands for two names

// The file of the program that was run, if samples came in it; else empty.
std::string program_of(const ValuesResult &result) {
  const std::string &path = result.process.executable;
  return std::ranges::any_of(result.executables,
                             [&](const ValueExecutable &each) { return each.path == path; })
             ? base_name(path)
             : "";
}
bool has_file(const ValuesResult &result, const std::string &name) {
  return std::ranges::any_of(result.executables, [&](const ValueExecutable &each) {
    return base_name(each.path) == name;
  });
}

// As two recordings have it: of code that a process made without the process's number; `program` stands for its file.
std::string file_of(const std::string &path, const std::string &program) {
  const std::string made = "[code made", name = base_name(path);
  return path.starts_with(made)                ? made + "]"
         : !program.empty() && name == program ? kProgram
                                               : name;
}

using SameBuilds = std::set<std::string>; // files of which both recordings have one build

// A function that is called by its address is the same one in one build alone; of others all such
// code is one, as it is where no function is known ("[code made by 1234] (no symbol)", without the
// number).
std::string name_of(const ValueFunction &function, const SameBuilds &same_builds,
                    const std::string &program) {
  const std::string file = file_of(function.module_path, program);
  const std::string base = base_name(function.module_path);
  const bool is_by_address = function.linkage_name.empty() && function.name.starts_with(base + "+");
  return (is_by_address && !same_builds.contains(file)) || function.name == base + " (no symbol)"
             ? file + " (no symbol)"
         : function.told_apart.empty() ? function.name
                                       : fmt::format("{} ({})", function.name, function.told_apart);
}

std::map<std::string, std::string> build_ids(const ValuesResult &result,
                                             const std::string &program) {
  std::map<std::string, std::string> ids;
  for (const ValueExecutable &each : result.executables)
    ids[file_of(each.path, program)] = each.build_id;
  return ids;
}

std::map<Key, Side> sides_of(const ValuesResult &result, const SameBuilds &same_builds,
                             const std::string &program) {
  std::map<Key, Side> sides;
  for (const ValueFunction &function : result.functions) {
    const std::string file = file_of(function.module_path, program);
    const std::string linked = function.linkage_name.empty()
                                   ? name_of(function, same_builds, program)
                                   : function.linkage_name + function.told_apart;
    std::map<std::string, unsigned> numbers;
    for (const ValueInstruction &instruction : function.instructions) {
      const std::string place =
          same_builds.contains(file)
              ? fmt::format("{:#x}", instruction.offset)
              : fmt::format("{} {}", instruction.text, numbers[instruction.text]++);
      for (const ValueList &list : instruction.lists)
        if (list.samples >= kFewSamples)
          sides.emplace(Key{file, linked, place, list.kind, list.subject},
                        Side{&function, &instruction, &list});
    }
  }
  return sides;
}

// Where memory lies is chance; small numbers, also negative ones, and places in code are not addresses.
bool is_address(const ValueShare &share) {
  const auto number = static_cast<int64_t>(share.value);
  return share.name.empty() && std::abs(number >> 1) >= int64_t{1} << 38;
}

// A place in code is another number in each build; what it is called stays, but for the line.
std::string function_of(const ValueShare &share) {
  const size_t space = share.name.rfind(' '), colon = share.name.rfind(':');
  const bool has_line = space != std::string::npos && colon != std::string::npos && colon > space &&
                        colon + 1 < share.name.size() &&
                        share.name.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return has_line ? share.name.substr(0, space) : share.name;
}

bool is_same(const ValueShare &a, const ValueShare &b, bool is_one_build) {
  return is_one_build || a.name.empty() || b.name.empty() ? a.value == b.value
                                                          : function_of(a) == function_of(b);
}

ValueShare share_in(const std::vector<ValueShare> &shares, const ValueShare &wanted,
                    uint64_t samples, bool is_one_build) {
  ValueShare all;
  bool is_there = false;
  for (const ValueShare &share : shares)
    if (is_same(share, wanted,
                is_one_build)) { // of a function that was built anew, perhaps several
      if (!is_there)
        all.value = share.value, all.name = share.name;
      all.share += share.share;
      all.low += share.low;
      all.high = std::min(1., all.high + share.high);
      is_there = true;
    }
  if (is_there)
    return all;
  // Not among the hot ones: below what a value is hot from.
  all.value = wanted.value;
  all.high = std::max(.01, profile::wilson_interval(0, double(samples)).second);
  return all;
}

bool differ(const ValueShare &a, const ValueShare &b) {
  auto low = [](const ValueShare &s) { return s.share - kWider * (s.share - s.low); };
  auto high = [](const ValueShare &s) { return s.share + kWider * (s.high - s.share); };
  return std::abs(a.share - b.share) >= kMinChange && (low(a) > high(b) || low(b) > high(a));
}

void compare(const Side &before, const Side &after, bool is_stride, bool is_one_build, double time,
             std::vector<ValueChange> &changes) {
  const auto &old = is_stride ? before.list->strides : before.list->hot;
  const auto &now = is_stride ? after.list->strides : after.list->hot;
  const uint64_t old_samples = is_stride ? before.list->stride_samples : before.list->samples;
  const uint64_t samples = is_stride ? after.list->stride_samples : after.list->samples;
  // No stride is seen where samples are too short for a second execution: that is not none.
  if (old_samples < kFewSamples || samples < kFewSamples)
    return;
  ValueChange change;
  double largest = 0, best = 0;
  auto look = [&](const ValueShare &share) {
    const ValueShare a = share_in(old, share, old_samples, is_one_build);
    const ValueShare b = share_in(now, share, samples, is_one_build);
    // Where one value gives way to another, both change by as much: the more frequent one is said.
    const double by = std::abs(a.share - b.share), score = by * std::max(a.share, b.share);
    if (is_address(b.name.empty() ? a : b) || !differ(a, b) || score <= best)
      return;
    largest = by;
    best = score;
    change.before = a;
    change.after = b;
  };
  for (const ValueShare &share : old)
    look(share);
  for (const ValueShare &share : now)
    look(share);
  if (largest == 0)
    return;
  if (change.before.share > change.after.share && !now.empty() && !is_address(now.front()) &&
      now.front().share > share_in(old, now.front(), old_samples, is_one_build).high)
    change.instead = now.front();
  change.function = after.function;
  change.instruction = after.instruction;
  change.list = after.list;
  change.is_stride = is_stride;
  change.subject = is_stride ? "stride" : after.list->subject;
  change.weight = largest * time;
  changes.push_back(std::move(change));
}

using Times = std::map<std::pair<std::string, std::string>, uint64_t>; // file, function
Times times_of(const ValuesResult &result, const SameBuilds &same_builds,
               const std::string &program, uint64_t &all) {
  Times times;
  for (const ValueFunction &function : result.functions) {
    times[{file_of(function.module_path, program), name_of(function, same_builds, program)}] +=
        function.interrupts;
    all += function.interrupts;
  }
  return times;
}

ValueShare share_of(const Times &times, const Times::key_type &key, uint64_t all) {
  const auto known = times.find(key);
  ValueShare share;
  if (all == 0)
    return share;
  share.share = known == times.end() ? 0 : double(known->second) / double(all);
  std::tie(share.low, share.high) = profile::wilson_interval(share.share, double(all));
  return share;
}

} // namespace

ValuesDiff diff(const ValuesResult &before, const ValuesResult &after) {
  ValuesDiff diff;
  diff.samples_before = before.samples;
  diff.samples_after = after.samples;
  std::string old_program = program_of(before), program = program_of(after);
  if (old_program.empty() || program.empty() || old_program == program ||
      has_file(before, program) || has_file(after, old_program))
    old_program = program = "";
  diff.program_before = old_program;
  diff.program_after = program;
  SameBuilds same_builds;
  const auto old_ids = build_ids(before, old_program);
  for (const auto &[file, id] : build_ids(after, program)) {
    const auto known = old_ids.find(file);
    if (known != old_ids.end() && known->second == id && !id.empty())
      same_builds.insert(file);
  }
  uint64_t all_before = 0, all_after = 0;
  const Times old_times = times_of(before, same_builds, old_program, all_before),
              times = times_of(after, same_builds, program, all_after);
  const auto old_sides = sides_of(before, same_builds, old_program);
  for (const auto &[key, side] : sides_of(after, same_builds, program)) {
    const auto known = old_sides.find(key);
    if (known == old_sides.end())
      continue;
    const Times::key_type name{std::get<0>(key), name_of(*side.function, same_builds, program)};
    const double time = std::max(share_of(old_times, name, all_before).share,
                                 share_of(times, name, all_after).share);
    const bool is_one_build = same_builds.contains(std::get<0>(key));
    compare(known->second, side, false, is_one_build, time, diff.values);
    compare(known->second, side, true, is_one_build, time, diff.values);
  }
  base::stable_sort(diff.values, [](auto &a, auto &b) { return a.weight > b.weight; });
  Times both = old_times;
  both.insert(times.begin(), times.end());
  for (const auto &[name, count] : both) {
    const ValueShare a = share_of(old_times, name, all_before),
                     b = share_of(times, name, all_after);
    if (std::abs(a.share - b.share) >= kMinTime &&
        (a.low - (kWider - 1) * (a.share - a.low) > b.high + (kWider - 1) * (b.high - b.share) ||
         b.low - (kWider - 1) * (b.share - b.low) > a.high + (kWider - 1) * (a.high - a.share)))
      diff.functions.push_back({name.second,
                                name.first == kProgram ? old_program + " → " + program : name.first,
                                a.share, b.share});
  }
  base::stable_sort(diff.functions, [](auto &a, auto &b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  return diff;
}

} // namespace analyze
