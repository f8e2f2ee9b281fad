// Sums of field accesses by struct, and what its layout costs.
//
// A nested record's fields are counted where they lie, in the outermost record that the source
// names; each record is a row of its own. Which fields are used together comes from sampled windows
// where there are enough, else from stretches of code, which are exact but see only what one
// function does at one place.

#include "analyze/fields.h"

#include "abi/fields.h"
#include "abi/sites.h"
#include "abi/tools.h"
#include "analyze/fields_names.h"
#include "analyze/frame.h"
#include "analyze/measured.h"
#include "analyze/regular_expression.h"
#include "base/sort_key.h"
#include "base/stable_sort.h"
#include "image/symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace analyze {
namespace {

constexpr uint64_t kFewRounds = 16;  // of windows: below that, stretches say more
constexpr uint64_t kFewWindows = 64; // the same of profiles that have no rounds
constexpr double kTooOften = 2;      // that windows have a field, beside how often code accesses it
constexpr size_t kMaxPlaces = 3;     // of a field
constexpr size_t kMaxPairs = 64;     // of a struct
constexpr uint64_t kLine = 64;

// Was any unit built with -fassay-fields=gep?
bool counts_addresses(const profile::Profile &profile) {
  constexpr size_t kFields = std::countr_zero(uint64_t{ASSAY_TOOL_fields});
  for (const profile::Module &module : profile.modules)
    for (const profile::Unit &unit : module.units)
      if (unit.modes.size() > kFields && unit.modes[kFields] & ASSAY_FIELDS_ADDRESSES)
        return true;
  return false;
}

class StructSums {
public:
  explicit StructSums(const profile::Record &record) {
    row_.record = record;
    row_.field_names = short_fields(record);
    row_.fields.resize(record.leaves.size());
    for (uint32_t i = 0; i < row_.fields.size(); i++)
      row_.fields[i].leaf = i;
    places_.resize(record.leaves.size());
  }

  void add(const profile::FieldUse &use) {
    for (uint32_t leaf = use.first; leaf <= use.first + use.more; leaf++) {
      FieldRow &field = row_.fields[leaf];
      field.reads += use.reads;
      field.writes += use.writes;
      field.copied += use.copied;
      row_.reads += use.reads;
      row_.writes += use.writes;
      places_[leaf][{use.function, use.line}] += use.reads + use.writes;
    }
  }

  void add(const profile::FieldSet &set) {
    (set.kind == ASSAY_SET_WINDOW ? windows_ : stretches_).push_back(set);
  }

  void add(const profile::FieldSampling &sampling) { row_.sampling = sampling; }

  uint64_t accesses() const { return row_.accesses(); }
  uint64_t writes(uint32_t leaf) const { return row_.fields[leaf].writes; }
  const std::string &field_name(uint32_t leaf) const { return row_.field_names[leaf]; }

  StructRow finish(const FirstParts &first_parts) {
    name_places();
    choose_sets();
    find_affinity();
    std::vector<uint64_t> accesses;
    for (const FieldRow &field : row_.fields)
      accesses.push_back(field.accesses());
    row_.members = members_of(row_.record, accesses, first_parts.of(row_.record));
    row_.holes = holes_of(row_.record, row_.members);
    row_.used_share = used_share();
    row_.disparity = disparity();
    LineCosts costs(row_.record, row_.members, row_.sets);
    row_.score = std::max(0.0, costs.of(costs.as_declared()) - costs.least()) * scale();
    row_.advice = advise_layout(row_.record, row_.members, row_.sets);
    return std::move(row_);
  }

private:
  // Line fetches of the run for one of the sets: windows are samples, so they are scaled by accesses.
  double scale() const {
    double in_sets = 0;
    for (const profile::FieldSet &set : row_.sets)
      in_sets += double(set.count) * double(set.leaves.size());
    return in_sets > 0 ? double(row_.accesses()) / in_sets * double(row_.set_count) : 0;
  }

  void name_places() {
    for (size_t i = 0; i < places_.size(); i++) {
      auto &to = row_.fields[i].places;
      for (auto &[place, accesses] : places_[i])
        to.push_back({place.first, place.second, accesses});
      base::stable_sort(to, [](auto &a, auto &b) { return a.accesses > b.accesses; });
      if (to.size() > kMaxPlaces)
        to.resize(kMaxPlaces);
      for (FieldRow::Place &place : to)
        place.function = image::demangled(place.function);
    }
  }

  // Of objects that are accessed, the share that each leaf is accessed in.
  static std::vector<double> shares(const FieldSets &sets, size_t leaves) {
    std::vector<double> shares(leaves);
    double all = 0;
    for (const profile::FieldSet &set : sets) {
      all += double(set.count);
      for (uint32_t leaf : set.leaves)
        shares[leaf] += double(set.count);
    }
    for (double &share : shares)
      share /= std::max(all, 1.0);
    return shares;
  }

  // Windows are samples and stretches are exact, so what is in windows must have been executed: an
  // object whose windows have n stretches each cannot be met with a leaf in more than n times the
  // share of stretches that access the leaf. Where it is, the samples come from another phase than
  // most of the run.
  bool windows_agree() const {
    if (stretches_.empty())
      return true;
    const size_t leaves = row_.fields.size();
    const std::vector<double> sampled = shares(windows_, leaves),
                              exact = shares(stretches_, leaves);
    const double n = double(row_.sampling.stretches) / double(row_.sampling.visits);
    for (size_t leaf = 0; leaf < leaves; leaf++)
      if (sampled[leaf] > kTooOften * n * exact[leaf] + .05)
        return false;
    return true;
  }

  // Stretches do not see neighbours in memory, on which it depends whether an order is worth
  // anything. Windows do, though they be few.
  void take_neighbours_of_windows() {
    double count = 0, adjacent = 0;
    for (const profile::FieldSet &set : windows_) {
      count += double(set.count);
      adjacent += double(set.adjacent);
    }
    for (profile::FieldSet &set : row_.sets)
      set.adjacent = static_cast<uint64_t>(double(set.count) * adjacent / std::max(count, 1.0));
  }

  void choose_sets() {
    uint64_t windows = 0;
    for (const profile::FieldSet &set : windows_)
      windows += set.count;
    row_.is_sampled = row_.sampling.visits ? row_.sampling.rounds >= kFewRounds && windows_agree()
                                           : windows >= kFewWindows;
    row_.sets = row_.is_sampled ? windows_ : stretches_;
    if (!row_.is_sampled && row_.sampling.visits && windows_agree())
      take_neighbours_of_windows();
    for (const profile::FieldSet &set : row_.sets)
      row_.set_count += set.count;
  }

  void find_affinity() {
    const size_t n = row_.fields.size();
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> together;
    std::vector<uint64_t> alone(n);
    for (const profile::FieldSet &set : row_.sets)
      for (size_t i = 0; i < set.leaves.size(); i++) {
        alone[set.leaves[i]] += set.count;
        for (size_t j = i + 1; j < set.leaves.size() && set.leaves.size() <= 64; j++)
          together[{set.leaves[i], set.leaves[j]}] += set.count;
      }
    for (auto &[pair, count] : together) {
      uint64_t either = alone[pair.first] + alone[pair.second] - count;
      row_.affinity.push_back({pair.first, pair.second, double(count) / double(either)});
    }
    auto weight = [&](const Affinity &each) {
      return each.together_share * double(alone[each.a] + alone[each.b]);
    };
    base::stable_sort(row_.affinity,
                      [&](const Affinity &a, const Affinity &b) { return weight(a) > weight(b); });
    if (row_.affinity.size() > kMaxPairs)
      row_.affinity.resize(kMaxPairs);
  }

  double used_share() const {
    uint64_t used = 0, size = row_.record.size;
    for (const Member &member : row_.members) {
      uint64_t of_member = 0;
      for (uint32_t i = member.first; i <= member.last; i++)
        if (row_.fields[i].accesses()) {
          const profile::Leaf &leaf = row_.record.leaves[i];
          of_member += (leaf.size_bits + 7) / 8 * leaf.elements;
        }
      used += std::min(of_member, member.size);
    }
    return size ? std::min(1.0, double(used) / double(size)) : 0;
  }

  // Of each line of the struct, how far the average byte stays behind the hottest one, weighted by the line's accesses.
  double disparity() const {
    std::map<uint64_t, std::vector<std::pair<uint64_t, double>>> lines; // bytes, accesses of each
    for (const FieldRow &field : row_.fields) {
      const profile::Leaf &leaf = row_.record.leaves[field.leaf];
      uint64_t bytes = std::max<uint64_t>((leaf.size_bits + 7) / 8, 1);
      lines[leaf.offset_bits / 8 / kLine].push_back(
          {bytes, double(field.accesses()) / double(leaf.elements)});
    }
    double sum = 0, weight = 0;
    for (auto &[line, fields] : lines) {
      uint64_t size = std::min(kLine, row_.record.size - std::min(row_.record.size, line * kLine));
      double most = 0, all = 0;
      for (auto [bytes, accesses] : fields) {
        most = std::max(most, accesses);
        all += accesses * double(bytes);
      }
      if (most > 0 && size) {
        sum += (1 - std::min(1.0, all / double(size) / most)) * most;
        weight += most;
      }
    }
    return weight > 0 ? sum / weight : 0;
  }

  StructRow row_;
  std::vector<std::map<std::pair<std::string, uint32_t>, uint64_t>> places_; // by leaf
  FieldSets windows_, stretches_;
};

} // namespace

std::string StructRow::place() const {
  return fmt::format("{}:{}", record.file.substr(record.file.rfind('/') + 1), record.line);
}

std::vector<size_t> StructRow::declared_order() const {
  std::vector<size_t> order = advice.layout.order;
  std::erase_if(order, [&](size_t i) { return members[i].is_of_compiler; });
  return order;
}

StructRow::Declarations StructRow::declarations() const {
  if (record.name.find('<') != std::string::npos)
    return {{}, "it is a template's"};
  std::vector<std::string> names;
  for (size_t i : declared_order()) {
    const Member &member = members[i];
    const uint32_t flags = record.leaves[member.first].flags;
    if (member.name.empty())
      return {{}, "some have no name"};
    if (flags & ASSAY_LEAF_INSEPARABLE ||
        (member.name.find('|') != std::string::npos && !(flags & ASSAY_LEAF_BIT_FIELD)))
      return {{},
              "it has no tag, or some are declared together, on one line or in a union: give it a "
              "tag, and each of them a line of its own"};
    for (size_t begin = 0; begin <= member.name.size();) {
      const size_t end = std::min(member.name.find('|', begin), member.name.size());
      names.push_back(member.name.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return {names, names.empty() ? "it has none of its own" : ""};
}

std::span<const StructOrder> struct_orders() {
  static constexpr StructOrder kOrders[] = {
      {"score", "Which structs waste the most cache lines?",
       [](const StructRow &a, const StructRow &b) { return a.score > b.score; }},
      {"accesses", "Which structs are accessed the most?",
       [](const StructRow &a, const StructRow &b) { return a.accesses() > b.accesses(); }},
      {"disparity", "Which structs have hot fields beside cold ones?",
       [](const StructRow &a, const StructRow &b) { return a.disparity > b.disparity; }},
      {"size", "Which structs are the largest?",
       [](const StructRow &a, const StructRow &b) { return a.record.size > b.record.size; }},
      {"name", "Which structs are there?",
       [](const StructRow &a, const StructRow &b) { return a.record.name < b.record.name; }},
  };
  return kOrders;
}

const StructOrder &struct_order(const std::string &key) {
  return base::chosen_order(struct_orders(), key);
}

bool has_fields(const profile::Profile &profile) {
  return measured(profile, ASSAY_TOOL_fields);
}

std::string why_no_fields(const profile::Profile &) {
  return "fields were not measured in this profile; build the program with -fassay=fields, and run "
         "it "
         "again";
}

// Between two changes of the writer to one side lies one to the other.
static uint64_t most_changes(const std::vector<StructSums> &sums,
                             const profile::FieldSharing &each) {
  const uint64_t one = sums[each.record.v].writes(each.leaf);
  const uint64_t other = sums[each.other_record.v].writes(each.other_leaf);
  const bool is_one = each.record.v == each.other_record.v && each.leaf == each.other_leaf;
  return is_one ? one : 2 * std::min(one, other);
}

FieldsResult fields(const profile::Profile &profile, const FieldsQuery &query) {
  FieldsResult result;
  TextFilter filter(query.filter);
  const StructOrder &order = struct_order(query.sort);
  if (!profile.processes.empty()) {
    result.process = profile.processes.front();
    result.program_build_id = program_build_id(profile, result.process);
  }
  result.losses = losses_of(profile, ASSAY_TOOL_fields);
  result.programs = program_names(profile);
  result.notes = notes_of(profile);
  if (counts_addresses(profile))
    result.notes.emplace_back("what is called a read is the computation of a field's address "
                              "(-fassay-fields=gep): no accesses were counted");
  std::vector<StructSums> sums;
  for (const profile::Record &record : profile.fields.records)
    sums.emplace_back(record);
  for (const profile::FieldUse &use : profile.fields.uses) {
    if (use.record.known()) {
      sums[use.record.v].add(use);
      result.accesses += use.reads + use.writes; // once, however many fields a wide one covers
    } else {
      result.lost += use.reads + use.writes;
    }
  }
  for (const profile::FieldSet &set : profile.fields.sets)
    sums[set.record.v].add(set);
  for (const profile::FieldSampling &sampling : profile.fields.sampling)
    sums[sampling.record.v].add(sampling);
  if (result.accesses + result.lost)
    result.attributed_share = double(result.accesses) / double(result.accesses + result.lost);
  const auto keeps = [&](const profile::Record &record) {
    return filter.keeps_type(record.name) || filter.keeps(record.file);
  };
  for (const profile::FieldSharing &each : profile.fields.sharing) {
    const profile::Record &a = profile.fields.records[each.record.v];
    const profile::Record &b = profile.fields.records[each.other_record.v];
    if (keeps(a) || keeps(b))
      result.sharing.push_back(
          {a.name, a.leaves[each.leaf].name, b.name, b.leaves[each.other_leaf].name,
           sums[each.record.v].field_name(each.leaf),
           sums[each.other_record.v].field_name(each.other_leaf), a.file, a.line,
           each.same_object * 2 >= each.count, each.count, most_changes(sums, each)});
  }
  base::stable_sort(result.sharing, [](auto &a, auto &b) { return a.count > b.count; });
  const FirstParts first_parts(profile.fields.records);
  for (const StructSums &sum : sums)
    result.of_structs += sum.accesses();
  for (StructSums &sum : sums) {
    StructRow row = sum.finish(first_parts);
    if (!row.accesses())
      continue;
    if (double(row.accesses()) < query.threshold * double(result.of_structs) || !keeps(row.record))
      result.filtered++;
    else
      result.structs.push_back(std::move(row));
  }
  result.filter = query.filter;
  base::stable_sort(result.structs, order.before);
  find_fields_findings(result);
  return result;
}

} // namespace analyze
