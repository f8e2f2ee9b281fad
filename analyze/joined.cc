// Rows that have what every tool says of one type, or of one allocation site, and phases with what fills them.
//
// The problem: five tools tell five stories of one run. One knows that a phase works on 48 MiB,
// another that a type has 31 MiB, a third that a quarter of each of its lines is used. Nobody
// changes a program for any of these alone; together they are a reason and a remedy. The idea: all
// tools name things from the same frames and type names, so rows meet by name: a site is the
// owner's function, file and line, with the type where it is known; a type is its name. What a tool
// did not record is absent in a row, never zero.
//
// Amounts are joined, never recomputed: a row's sums are the heap tool's sums, its lines are those
// of snapshots. Only the most lines of a type are found anew, because the most of a sum is not the
// sum of the most.
//
// Refused: joining by address or by call stack. Working sets and words are kept by site, since a
// person changes a line, not one of the hundred ways to it. Refused as well: the accesses of each
// phase. The heap tool counts over objects' lives, so a row's accesses are those of the run.

#include "analyze/joined.h"

#include "abi/tools.h"
#include "analyze/regular_expression.h"
#include "analyze/type_names.h"
#include "base/sort_key.h"
#include "base/stable_sort.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace analyze {
namespace {

constexpr const char *kHeap = "heap";
constexpr size_t kMaxFirst = 6;     // members that a sentence names
constexpr double kFirstShare = 0.9; // of all accesses, that they have
constexpr double kColdShare = 0.02; // of all accesses: a member with fewer need not be first
constexpr double kMostly = 0.5;     // of the bytes on the heap
constexpr double kMinGain = 0.05;   // share of the lines that an order must save

// Rows by what they are of.
class Rows {
public:
  explicit Rows(std::vector<JoinedRow> &rows) : rows_(rows) {}
  size_t of(const std::string &kind, const std::string &site, const std::string &type) {
    // A variable has one type, which not every tool knows.
    const bool by_type = kind == kHeap || site.empty();
    auto key = std::tuple(site.empty() ? "" : kind, site, by_type ? type : "");
    auto [known, is_new] = index_.try_emplace(key, rows_.size());
    if (is_new)
      rows_.emplace_back().site = site;
    JoinedRow &row = rows_[known->second];
    if (row.kind.empty())
      row.kind = kind;
    if (row.type.empty())
      row.type = type;
    return known->second;
  }
  JoinedRow &operator[](size_t index) { return rows_[index]; }
  size_t size() const { return rows_.size(); }

private:
  std::vector<JoinedRow> &rows_;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> index_;
};

void add(std::optional<WordSums> &to, const ObjectRow &row) {
  if (!to)
    to.emplace();
  to->used += row.sums.used_units;
  to->in_lines += row.sums.line_units;
  to->line_bytes += row.unused_line_bytes();
}

class Join {
public:
  explicit Join(JoinedResult &result, const JoinQuery &query)
      : result_(result), from_(result.from), query_(query), filter_(query.filter),
        types_(result.types), sites_(result.sites) {}

  void join() {
    frame();
    if (from_.heap)
      heap();
    if (from_.objects)
      objects();
    if (from_.workingsets)
      workingsets();
    if (from_.fields)
      fields();
    note_untyped();
    sort(result_.types);
    const std::vector<size_t> moved = sort(result_.sites);
    for (JoinedPhase &phase : result_.phases)
      for (PhaseOwner &owner : phase.owners)
        if (owner.row)
          owner.row = moved[*owner.row];
  }

private:
  // Of all tools: who was measured, what was lost.
  template <class Result> void take(const Result &result, const profile::Process &process) {
    if (result_.program_build_id.empty())
      result_.program_build_id = result.program_build_id;
    if (result_.process.executable.empty())
      result_.process = process;
    for (auto [kind, count] : result.losses)
      if (count)
        result_.losses[kind] = std::max(result_.losses[kind], count);
    for (const std::string &note : result.notes)
      if (std::find(result_.notes.begin(), result_.notes.end(), note) == result_.notes.end())
        result_.notes.push_back(note);
  }

  void frame() {
    if (const HeapResult *heap = from_.heap) {
      result_.programs = heap->programs;
      take(*heap, heap->processes.empty() ? profile::Process() : heap->processes.front());
      constexpr uint64_t kOutside = 0
#define ASSAY_TOOL(name, bit, is_default, question)
#define ASSAY_OUTSIDE_TOOL(name, bit, question) | uint64_t{1} << bit
#include "abi/tools.def"
          ;
      for (const profile::Process &each : heap->processes)
        result_.processes += (assay_tools_or_default(each.tools) & ~kOutside) != 0;
      if (!heap->measured) { // it was asked for the frame alone
        from_.heap = nullptr;
        std::erase_if(from_.findings, [](const ToolFindings &each) { return each.tool == "heap"; });
      }
    }
    if (from_.workingsets && from_.workingsets->empty())
      from_.workingsets = nullptr;
    if (from_.workingsets)
      for (const WorkingSetResult &each : *from_.workingsets)
        take(each, each.process);
    if (from_.fields)
      take(*from_.fields, from_.fields->process);
    if (from_.objects)
      take(*from_.objects, from_.objects->process);
    if (from_.values)
      take(*from_.values, from_.values->process);
    auto has = [&](const std::string &name) {
      return std::any_of(from_.findings.begin(), from_.findings.end(),
                         [&](const ToolFindings &each) { return each.tool == name; });
    };
#define ASSAY_TOOL(name, bit, is_default, question)                                                \
  result_.tools.push_back({#name, has(#name), true});
#define ASSAY_OUTSIDE_TOOL(name, bit, question) result_.tools.push_back({#name, has(#name), false});
#include "abi/tools.def"
  }

  void heap() {
    for (const HeapContextRow &site : from_.heap->sites) {
      const std::string type = type_key(site.type);
      for (Rows *rows : {&sites_, &types_}) {
        JoinedRow &row = (*rows)[rows->of(kHeap, rows == &sites_ ? site_of(site) : "", type)];
        if (!row.heap)
          row.heap.emplace();
        row.heap->add(site.sums);
        row.accesses_counted |= from_.heap->accesses_counted && site.accesses_counted;
      }
    }
  }

  // Objects of which no tool knows the type are not joined with what the fields tool says of types.
  void note_untyped() {
    if (!from_.heap || !from_.fields)
      return;
    for (const JoinedRow &row : result_.types) {
      const uint64_t all = from_.heap->totals.all.size_total;
      if (row.type.empty() && row.heap && double(row.heap->all.size_total) > kMostly * double(all))
        result_.notes.push_back(fmt::format(
            "of {} of the bytes on the heap the type is not known, so they are not joined with the "
            "fields of structs; if they are a pool's, describe it (assay/annotate.h)",
            base::format_share(double(row.heap->all.size_total) / double(all))));
    }
  }

  void objects() {
    for (const ObjectRow &object : from_.objects->rows) {
      const std::string type = type_key(object.kind == "stack" ? object.name : object.type);
      if (object.kind != "stack")
        add(sites_[sites_.of(object.kind, object.name, type)].words, object);
      if (!type.empty() || object.kind == kHeap)
        add(types_[types_.of(object.kind, "", type)].words, object);
    }
  }

  void fields() {
    std::set<std::string> shared;
    for (const SharingRow &row : from_.fields->sharing)
      shared.insert({type_key(row.record), type_key(row.other_record)});
    std::map<std::string, const StructRow *> by_name;
    for (const StructRow &row : from_.fields->structs) {
      const std::string name = type_key(row.record.name);
      if (!by_name.emplace(name, &row).second)
        result_.shared_names.try_emplace(name, 1).first->second++;
      types_.of("", "", name);
    }
    for (std::vector<JoinedRow> *rows : {&result_.types, &result_.sites})
      for (JoinedRow &row : *rows) {
        auto known = by_name.find(row.type);
        row.fields = known == by_name.end() || result_.shared_names.contains(row.type)
                         ? nullptr
                         : known->second;
        row.false_sharing = shared.count(row.type) != 0;
      }
    for (const auto &[name, structs] : result_.shared_names)
      result_.notes.push_back(
          fmt::format("{} types are called {}, so what fields says of them is not joined with "
                      "objects: assay fields tells them apart",
                      structs, name));
  }

  void workingsets() {
    std::vector<const WorkingSetResult *> order;
    for (const WorkingSetResult &each : *from_.workingsets)
      order.push_back(&each);
    base::stable_sort(order, [](auto *a, auto *b) { return a->total_lines > b->total_lines; });
    result_.line_bytes = order.front()->line_bytes;
    for (const WorkingSetResult *set : order)
      workingset(*set);
    if (order.front()->caches.empty())
      result_.notes.emplace_back("the machine does not say how large its caches are, so what fits "
                                 "is not said; name them: --cache L1=48KiB --cache L2=1MiB");
  }

  void workingset(const WorkingSetResult &set) {
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> site_of_owner(set.owners.size(), kNone), type_of_owner = site_of_owner;
    for (const OwnerRow &each : set.owner_rows) {
      const OwnerName &owner = set.owners[each.owner];
      if (owner.kind == "memory")
        continue;
      const std::string type = type_key(owner.type);
      site_of_owner[each.owner] = sites_.of(owner.kind, short_place(owner.name), type);
      if (owner.kind == kHeap)
        type_of_owner[each.owner] = types_.of(kHeap, "", type);
    }
    const size_t first_phase = result_.phases.size();
    for (const Phase &phase : set.phases) {
      JoinedPhase joined;
      joined.number = size_t(&phase - set.phases.data()) + 1;
      joined.set = &set;
      joined.phase = &phase;
      joined.fits = smallest_cache(set, phase);
      for (const OwnerCount &each : phase.owners) {
        const size_t row = site_of_owner[each.owner];
        const OwnerName &owner = set.owners[each.owner];
        if (filter_.keeps(owner.name) || filter_.keeps_type(owner.type) ||
            filter_.keeps(owner.kind))
          joined.owners.push_back(
              {&owner, each.lines, row == kNone ? std::nullopt : std::optional(row)});
      }
      result_.phases.push_back(std::move(joined));
    }
    add_set(set, site_of_owner, sites_, first_phase);
    add_set(set, type_of_owner, types_, first_phase);
  }

  // The lines of each row in one process, of which the process with the most of it counts.
  static void add_set(const WorkingSetResult &set, const std::vector<size_t> &row_of, Rows &rows,
                      size_t first_phase) {
    std::map<size_t, SetShare> shares;
    std::map<size_t, uint64_t> lines; // by row
    std::map<size_t, double> most;    // lines by time in a phase
    auto sum = [&](const std::vector<OwnerCount> &owners) {
      lines.clear();
      for (const OwnerCount &each : owners)
        if (row_of[each.owner] != SIZE_MAX)
          lines[row_of[each.owner]] += each.lines;
    };
    const double all = set.weight();
    for (const SnapshotRow &snapshot : set.snapshots) {
      sum(snapshot.owners);
      for (auto [row, count] : lines) {
        SetShare &share = shares[row];
        share.most_lines = std::max(share.most_lines, count);
        share.mean_lines += double(count) * snapshot.weight() / all;
        share.time_share += snapshot.weight() / all;
      }
    }
    for (size_t i = 0; i < set.phases.size(); i++) {
      sum(set.phases[i].owners);
      const auto length_of_phase = double(std::max<uint64_t>(set.length(set.phases[i]), 1));
      for (auto [row, count] : lines)
        if (double(count) * length_of_phase > most[row]) {
          most[row] = double(count) * length_of_phase;
          shares[row].phase = first_phase + i;
          shares[row].phase_lines = count;
        }
    }
    for (const auto &[row, share] : shares)
      if (auto &most_of_all = rows[row].set;
          !most_of_all || share.most_lines > most_of_all->most_lines)
        most_of_all = share;
  }

  static std::string smallest_cache(const WorkingSetResult &set, const Phase &phase) {
    const CacheFit *best = nullptr;
    bool any = false;
    for (const CacheFit &cache : set.caches) {
      if (cache.name == "TLB")
        continue;
      any = true;
      if (cache.holds(set.bytes(phase.mean_lines)) && (!best || cache.bytes < best->bytes))
        best = &cache;
    }
    return best ? best->name : any ? "memory" : "";
  }

  // Where each row went.
  std::vector<size_t> sort(std::vector<JoinedRow> &rows) const {
    const JoinedOrder &order = joined_order(query_.sort);
    std::vector<std::pair<double, size_t>> ranks;
    ranks.reserve(rows.size());
    for (size_t i = 0; i < rows.size(); i++)
      ranks.emplace_back(-order.rank(rows[i], result_.line_bytes), i);
    std::sort(ranks.begin(), ranks.end());
    std::vector<size_t> moved(rows.size());
    std::vector<JoinedRow> sorted;
    sorted.reserve(rows.size());
    for (auto [rank, i] : ranks) {
      moved[i] = sorted.size();
      sorted.push_back(std::move(rows[i]));
    }
    rows = std::move(sorted);
    return moved;
  }

  JoinedResult &result_;
  ToolResults &from_;
  const JoinQuery &query_;
  TextFilter filter_;
  Rows types_, sites_;
};

// What a row is of: a variable has one type, which not every tool knows.
std::pair<std::string, std::string> subject_of(const JoinedRow &row) {
  return {row.site, row.kind == kHeap || row.site.empty() ? row.type : ""};
}

std::set<std::pair<std::string, std::string>> subjects_of(const std::vector<JoinedRow> &rows) {
  std::set<std::pair<std::string, std::string>> subjects;
  for (const JoinedRow &row : rows)
    subjects.insert(subject_of(row));
  return subjects;
}

// How many rows are taken away: those that are not in `matching`.
size_t keep_types(std::vector<JoinedRow> &types, const JoinedResult &matching) {
  const auto kept = subjects_of(matching.types);
  return std::erase_if(types, [&](const JoinedRow &row) { return !kept.count(subject_of(row)); });
}

// The same of sites, which phases refer to.
size_t keep_sites(JoinedResult &result, const JoinedResult &matching) {
  const auto kept = subjects_of(matching.sites);
  std::vector<std::optional<size_t>> moved;
  std::vector<JoinedRow> sites;
  for (JoinedRow &row : result.sites) {
    const bool is_kept = kept.count(subject_of(row)) != 0;
    moved.push_back(is_kept ? std::optional(sites.size()) : std::nullopt);
    if (is_kept)
      sites.push_back(std::move(row));
  }
  for (JoinedPhase &phase : result.phases)
    for (PhaseOwner &owner : phase.owners)
      if (owner.row)
        owner.row = moved[*owner.row];
  const size_t taken = result.sites.size() - sites.size();
  result.sites = std::move(sites);
  return taken;
}

double set_bytes(const JoinedRow &row, uint64_t line_bytes) {
  return row.set ? double(row.set->most_lines * line_bytes) : 0;
}

double peak_bytes(const JoinedRow &row, uint64_t) {
  return row.heap ? double(row.heap->at_peak_bytes) : 0;
}

} // namespace

std::optional<double> JoinedRow::used_share() const {
  if (words && words->in_lines)
    return double(words->used) / double(words->in_lines);
  if (heap && accesses_counted)
    return heap->used_share();
  return std::nullopt;
}

const char *JoinedRow::used_by() const {
  return words && words->in_lines ? "objects" : heap && accesses_counted ? "heap" : "";
}

std::vector<std::string> JoinedRow::first_members() const {
  if (!fields || !fields->advice.is_worth_it ||
      fields->advice.lines_after > (1 - kMinGain) * fields->advice.lines_before)
    return {};
  std::vector<std::string> names;
  uint64_t accesses = 0, all = 0;
  for (const Member &member : fields->members)
    all += member.accesses;
  for (size_t i : fields->advice.layout.order) {
    const Member &member = fields->members[i];
    if (member.is_fixed || double(member.accesses) < kColdShare * double(all))
      continue;
    if (names.size() == kMaxFirst || double(accesses) >= kFirstShare * double(all))
      break;
    names.push_back(member.name);
    accesses += member.accesses;
  }
  return names;
}

std::vector<std::string> JoinedFinding::tools() const {
  std::vector<std::string> names;
  for (const ToolFact &fact : facts)
    if (std::find(names.begin(), names.end(), fact.tool) == names.end())
      names.push_back(fact.tool);
  return names;
}

std::string type_key(const std::string &type) {
  for (const char *word : {"struct ", "class ", "union "})
    if (type.starts_with(word))
      return short_type(type.substr(std::string(word).size()));
  return short_type(type);
}

std::string subject_text(const JoinedRow &row) {
  if (row.kind == "global")
    return "the global `" + row.site + "`";
  if (row.kind != kHeap && !row.site.empty())
    return row.site;
  if (row.site.empty())
    return row.type.empty() ? "objects of unknown type" : "`" + row.type + "`";
  return (row.type.empty() ? "objects" : "`" + row.type + "`") + " from " + row.site;
}

std::span<const JoinedOrder> joined_orders() {
  static constexpr JoinedOrder kOrders[] = {
      {"waste", "bring in the most that is not used?",
       [](const JoinedRow &row, uint64_t line_bytes) {
         const double bytes = row.set ? set_bytes(row, line_bytes) : peak_bytes(row, line_bytes);
         return bytes * (1 - row.used_share().value_or(1)) +
                bytes / 1e3 + // what is not known comes last
                (row.fields ? row.fields->score / 1e12 : 0);
       }},
      {"set", "fill the working set?", set_bytes},
      {"peak", "fill the memory at its peak?", peak_bytes},
      {"bytes", "are the most bytes asked for?",
       [](const JoinedRow &row, uint64_t) {
         return row.heap ? double(row.heap->all.size_total) : 0;
       }},
      {"count", "have the most objects?",
       [](const JoinedRow &row, uint64_t) {
         return row.heap ? double(row.heap->all.alloc_count) : 0;
       }},
      {"accesses", "are accessed the most?",
       [](const JoinedRow &row, uint64_t) { return row.heap ? double(row.heap->accesses()) : 0; }},
      {"lines", "bring in the most lines that another order of members saves?",
       [](const JoinedRow &row, uint64_t) { return row.fields ? row.fields->score : 0; }},
  };
  return kOrders;
}

const JoinedOrder &joined_order(const std::string &key) {
  return base::chosen_order(joined_orders(), key);
}

JoinedResult join(const ToolResults &results, const JoinQuery &query) {
  JoinedResult result;
  result.from = results;
  result.filter = query.filter;
  Join(result, query).join();
  join_findings(result, query);
  if (query.matching) {
    result.filtered_types = keep_types(result.types, *query.matching);
    result.filtered_sites = keep_sites(result, *query.matching);
  }
  return result;
}

} // namespace analyze
