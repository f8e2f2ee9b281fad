// The findings of all tools as one list: those about one thing are one item, ranked by what it could save.
//
// The problem: each tool ranks its findings by a share of its own: of byte-seconds, of allocations,
// of accesses to fields, of samples. Laid side by side these do not compare: 60 % of all accesses
// to fields may reach a struct that never leaves the first-level cache, and 40 % of all allocations
// may cost a thousandth of the time. The idea: what one tool does not know another has measured.
//   - A layout that brings in too many lines costs where the lines have to be brought in: by how much of the type is needed at a time
//     (working set, else the heap's peak) against the caches of the machine.
//   - Allocations, and bytes that realloc copies, cost what such a call costs, of the time of the run.
//   - Memory that is never touched costs no time: it counts half, and no more than what is held of it at a time.
//   - Samples are shares of time, and so are the working set's weights: they count as they are.
// Which of these it is, the tool says that finds it (Finding::gain). What several tools say of one
// thing is about the same lines, so it does not add up: the rank of an item is that of its heaviest
// finding, and each other tool that agrees adds a tenth of its own, of what is left of the run.
//
// What is one thing: the same type, or the same allocation site. A finding about code belongs to
// the type whose field its line accesses, else to the site in its function, else it stands alone.
// Refused: one item for each function. `main` allocates everything in small programs, and an item
// that says five things says nothing.

#include "analyze/joined.h"

#include "analyze/place.h"
#include "analyze/regular_expression.h"
#include "base/stable_sort.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace analyze {
namespace {

using Part = JoinedFinding::Part;

constexpr double kAllocationUs = 0.1; // of a call of malloc and of free, and what they displace
constexpr double kCopiedBytesPerUs = 5000; // by realloc
constexpr double kMemoryAlone = 0.5;       // beside time
constexpr double kFitsFirst = 0.1;         // what a better layout saves of what fits into L1
constexpr double kFitsSecond = 0.4;        // the same of L2
constexpr double kFitsThird = 0.5;         // the same of L3
constexpr double kAgreement = 0.1;         // of the rank of a second tool
constexpr double kUnknownReach = 0.25;     // of what no tool has seen in memory
constexpr double kLineTransfers = 0.5;     // of threads that write one line in turn
constexpr double kSureTransfers = 100;     // as many are no chance
constexpr double kMinPhaseShare = 0.25;    // of the lines of a phase, to be named with it

// About how objects lie in lines.
bool is_layout(const Part &part) {
  return part.finding.gain == Gain::kLineUse;
}

// About how much memory is used, not about how often something is done.
bool is_space(const Part &part) {
  const Gain gain = part.finding.gain;
  return gain == Gain::kLineUse || gain == Gain::kWorkingSet || gain == Gain::kMemory;
}

std::string bytes(double amount) {
  return base::format_bytes(amount);
}

// Which items are one: a forest of indices.
class Sets {
public:
  explicit Sets(size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t of(size_t i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parent_[of(b)] = of(a); }

private:
  std::vector<size_t> parent_;
};

class FindingsJoin {
public:
  explicit FindingsJoin(JoinedResult &result) : result_(result), filter_(result.filter) {
    for (size_t i = 0; i < result.types.size(); i++)
      types_.emplace(result.types[i].type, i);
    for (size_t i = 0; i < result.sites.size(); i++) {
      sites_.emplace(std::pair(result.sites[i].site, result.sites[i].type), i);
      sites_.emplace(std::pair(result.sites[i].site, ""), i);
    }
  }

  void find() {
    gather();
    for (std::vector<Part> &group : grouped())
      if (std::any_of(group.begin(), group.end(), [&](const Part &part) { return is_kept(part); }))
        put(std::move(group));
    base::stable_sort(result_.findings, [](const JoinedFinding &a, const JoinedFinding &b) {
      return a.finding.weight > b.finding.weight;
    });
  }

private:
  void gather() {
    for (const ToolFindings &from : result_.from.findings)
      for (const Finding &finding : from.findings) {
        Part part{from.tool, finding, 0, from.is_filtered, finding.about.type};
        part.finding.about.type = type_key(finding.about.type);
        part.weight = worth(part.finding);
        parts_.push_back(std::move(part));
      }
  }

  bool is_kept(const Part &part) const {
    if (part.is_filtered)
      return true;
    const Finding &finding = part.finding;
    const Subject &about = finding.about;
    for (const std::string &name :
         {finding.location, about.type, part.type, about.site, about.function, about.file})
      if (filter_.keeps(name))
        return true;
    return false;
  }

  const JoinedRow *site_row(const Subject &about) const {
    auto known = about.site.empty() ? sites_.end() : sites_.find({about.site, about.type});
    if (known == sites_.end() && !about.site.empty())
      known = sites_.find({about.site, ""});
    return known == sites_.end() ? nullptr : &result_.sites[known->second];
  }
  const JoinedRow *type_row(const std::string &type) const {
    auto known = type.empty() ? types_.end() : types_.find(type);
    return known == types_.end() ? nullptr : &result_.types[known->second];
  }
  // How much of it is needed at a time; nothing if no tool has seen it.
  std::optional<double> bytes_at_a_time(const JoinedRow *row) const {
    if (row && row->set)
      return double(row->set->most_lines * result_.line_bytes);
    if (row && row->heap && result_.from.heap->peak_is_divided)
      return double(row->heap->at_peak_bytes);
    return std::nullopt;
  }
  // The cache that holds what is needed of it at a time: 1, 2, 3; 0: none of these.
  int cache_of(const JoinedRow *row) const {
    const auto amount = bytes_at_a_time(row);
    if (!amount)
      return 0;
    for (int level = 1; level <= 3; level++)
      if (*amount <= double(cache_bytes(level)))
        return level;
    return 0;
  }
  // 0 if it is not known: as the working set was asked with, else the machine's.
  uint64_t cache_bytes(int level) const {
    const std::string name = "L" + std::to_string(level);
    uint64_t bytes = 0;
    if (const auto &machine = result_.process.machine)
      bytes = level == 1 ? machine->l1d_bytes : level == 2 ? machine->l2_bytes : machine->l3_bytes;
    if (!result_.phases.empty())
      for (const CacheFit &cache : result_.phases.front().set->caches)
        if (cache.name == name)
          bytes = cache.bytes;
    return bytes;
  }

  double worth(const Finding &finding) const {
    const double weight = std::min(finding.weight, 1.0) * finding.saved_share;
    switch (finding.gain) {
    case Gain::kTime:
    case Gain::kWorkingSet: return weight;
    case Gain::kCalls: return std::min(weight, share_of_run(finding.saves.amount * kAllocationUs));
    case Gain::kCopiedBytes:
      return std::min(weight, share_of_run(finding.saves.amount / kCopiedBytesPerUs));
    case Gain::kMemory:
      return std::min(weight, share_of_peak(site_row(finding.about))) * kMemoryAlone;
    case Gain::kLineTransfers:
      return kLineTransfers * std::min(1.0, finding.saves.amount / kSureTransfers);
    case Gain::kLineUse: break;
    }
    const JoinedRow *row = type_row(finding.about.type);
    if (!row)
      row = site_row(finding.about);
    const int cache = cache_of(row);
    return weight * (!bytes_at_a_time(row) ? kUnknownReach
                     : cache == 1          ? kFitsFirst
                     : cache == 2          ? kFitsSecond
                     : cache == 3          ? kFitsThird
                                           : 1);
  }
  double share_of_run(double us) const {
    const uint64_t run_us = result_.from.heap ? result_.from.heap->run_us : 0;
    return run_us ? us / double(run_us) : 0;
  }
  // What is given back before it is asked for again is never held: of a buffer that each call makes
  // and frees there is one.
  double share_of_peak(const JoinedRow *row) const {
    const uint64_t peak = result_.from.heap ? result_.from.heap->peak_live_bytes : 0;
    return row && row->heap && peak ? std::min(1.0, double(row->heap->peak_bytes) / double(peak))
                                    : 1;
  }

  // Is it a name that says of what objects are?
  static bool names_objects(const std::string &type) { return !type.empty() && !is_scalar(type); }

  std::vector<std::vector<Part>> grouped() {
    Sets sets(parts_.size());
    std::map<std::string, size_t> known;
    auto meet = [&](const std::string &key, size_t i) {
      auto [first, is_new] = known.try_emplace(key, i);
      if (!is_new)
        sets.join(first->second, i);
    };
    for (size_t i = 0; i < parts_.size(); i++) {
      const Subject &about = parts_[i].finding.about;
      if (names_objects(about.type))
        meet("type " + about.type, i);
      if (!about.site.empty())
        meet("site " + about.site, i);
      if (!about.function.empty())
        meet("code " + about.function, i);
    }
    for (size_t i = 0; i < parts_.size(); i++)
      if (const Subject &about = parts_[i].finding.about; !about.function.empty())
        if (auto other = objects_of(about))
          sets.join(*other, i);
    std::map<size_t, std::vector<Part>> groups;
    for (size_t i = 0; i < parts_.size(); i++)
      groups[sets.of(i)].push_back(parts_[i]);
    std::vector<std::vector<Part>> list;
    list.reserve(groups.size());
    for (auto &[first, group] : groups)
      list.push_back(std::move(group));
    return list;
  }

  // The finding about objects that a finding about code belongs to: the heaviest of those about the
  // type whose field the line accesses, else of those about a site in the function.
  std::optional<size_t> objects_of(const Subject &code) const {
    const std::string type = type_accessed_at(code), function = short_name(code.function) + " at ";
    std::optional<size_t> by_type, by_site;
    auto prefer = [&](std::optional<size_t> &best, size_t i) {
      if (!best || parts_[i].weight > parts_[*best].weight)
        best = i;
    };
    for (size_t i = 0; i < parts_.size(); i++) {
      const Subject &about = parts_[i].finding.about;
      if (!type.empty() && about.type == type)
        prefer(by_type, i);
      if (about.site.starts_with(function))
        prefer(by_site, i);
    }
    return by_type ? by_type : by_site;
  }

  // The struct with most accesses to its fields in this function and line.
  std::string type_accessed_at(const Subject &code) const {
    std::string best;
    uint64_t most = 0;
    if (!result_.from.fields || code.line == 0)
      return best;
    const std::string function = short_name(code.function);
    for (const StructRow &row : result_.from.fields->structs)
      for (const FieldRow &field : row.fields)
        for (const FieldRow::Place &place : field.places)
          if (place.line == code.line && place.accesses > most &&
              short_name(place.function) == function) {
            most = place.accesses;
            best = type_key(row.record.name);
          }
    return best;
  }

  // The row that has the facts: of the site if all is about one, else of the type.
  const JoinedRow *row_of(const std::vector<Part> &group) const {
    std::set<std::string> sites;
    std::string type;
    const Part *first = nullptr;
    for (const Part &part : group) {
      if (!part.finding.about.site.empty()) {
        sites.insert(part.finding.about.site);
        first = first ? first : &part;
      }
      if (type.empty() && names_objects(part.finding.about.type))
        type = part.finding.about.type;
    }
    const JoinedRow *by_type = type_row(type);
    if (sites.size() == 1) {
      Subject about = first->finding.about;
      if (about.type.empty())
        about.type = type;
      return site_row(about);
    }
    if (!by_type && first)
      return site_row(first->finding.about);
    // Of one site, that says where.
    const JoinedRow *only = nullptr;
    size_t count = 0;
    for (const JoinedRow &row : result_.sites)
      if (by_type && row.type == type && row.kind == "heap" && row.heap) {
        only = &row;
        count++;
      }
    return count == 1 ? only : by_type;
  }

  void put(std::vector<Part> group) {
    base::stable_sort(group, [](const Part &a, const Part &b) { return a.weight > b.weight; });
    // Several processes say the same.
    std::set<std::tuple<std::string, std::string, std::string, std::string, std::string, uint32_t,
                        std::string>>
        said;
    std::erase_if(group, [&](const Part &part) {
      const Subject &about = part.finding.about;
      return !said.insert({part.tool, part.finding.rule, about.type, about.members, about.site,
                           about.line, about.function})
                  .second;
    });
    const JoinedRow *row = row_of(group);
    JoinedFinding joined;
    const Part &lead = group.front();
    joined.finding = lead.finding;
    std::map<std::string, double> ranks; // of tools
    std::set<std::string> doubts;
    for (const Part &part : group) {
      ranks[part.tool] = std::max(ranks[part.tool], part.weight);
      doubts.insert(part.finding.qualified_by.begin(), part.finding.qualified_by.end());
    }
    double left = 1 - std::min(lead.weight, 1.0);
    for (const auto &[tool, rank] : ranks)
      if (tool != lead.tool)
        left *= 1 - kAgreement * std::min(rank, 1.0);
    joined.finding.weight = 1 - left;
    joined.finding.qualified_by.assign(doubts.begin(), doubts.end());
    joined.finding.message = message(group, row);
    joined.finding.action = action(group, row);
    joined.facts = facts(group, row, joined.finding.message);
    joined.finding.evidence.clear();
    for (const ToolFact &fact : joined.facts)
      joined.finding.evidence +=
          (joined.finding.evidence.empty() ? "" : "; ") + fact.tool + ": " + fact.text;
    if (row) {
      joined.finding.about.type = row->type;
      joined.finding.about.site = row->site;
    }
    joined.parts = std::move(group);
    result_.findings.push_back(std::move(joined));
  }

  // "phase 3 (62 % of the run)", "the run".
  static std::string which(const JoinedPhase &phase) {
    return phase.whole_run() ? "the run"
                             : fmt::format("phase {} ({} of the run)", phase.number,
                                           base::format_share(phase.time_share()));
  }

  static std::string fit(const JoinedPhase &phase) {
    const WorkingSetResult &set = *phase.set;
    const double at_a_time = double(set.bytes(phase.phase->mean_lines));
    const CacheFit *exceeded = nullptr;
    for (const CacheFit &cache : set.caches)
      if (cache.name != "TLB" && double(cache.bytes) < at_a_time &&
          (!exceeded || cache.bytes > exceeded->bytes))
        exceeded = &cache;
    std::string text;
    if (at_a_time < .9 * double(set.bytes(phase.phase->lines)))
      text = fmt::format(", {} of it at a time", bytes(at_a_time));
    if (exceeded)
      text += fmt::format(", which does not fit in {} ({})", exceeded->name,
                          bytes(double(exceeded->bytes)));
    else if (!phase.fits.empty())
      text += fmt::format(", which fits in {}", phase.fits);
    return text;
  }

  static std::string used_text(const JoinedRow &row) {
    const auto share = row.used_share();
    if (!share)
      return "";
    return row.words && row.words->in_lines
               ? fmt::format(", of which {} of each line is used", base::format_share(*share))
               : fmt::format(", of whose {}-byte blocks {} are touched", kBlockBytes,
                             base::format_share(*share));
  }

  // The sentence that no tool alone can say, if the row fills a phase; else what the first one says.
  std::string message(const std::vector<Part> &group, const JoinedRow *row) const {
    const Part &lead = group.front();
    if (!row || !row->set || !is_space(lead))
      return lead.finding.message;
    const JoinedPhase &phase = result_.phases[row->set->phase];
    const Phase &lines = *phase.phase;
    if (double(row->set->phase_lines) < kMinPhaseShare * double(lines.lines))
      return lead.finding.message;
    return fmt::format("{} works on {}{}; {} of it is {}{}", which(phase),
                       bytes(double(phase.set->bytes(lines.lines))), fit(phase),
                       bytes(double(phase.set->bytes(row->set->phase_lines))), subject_text(*row),
                       used_text(*row));
  }

  static std::string names_text(const std::vector<std::string> &names) {
    std::string text;
    for (size_t i = 0; i < names.size(); i++)
      text += (i == 0 ? "`" : i + 1 == names.size() ? "` and `" : "`, `") + names[i];
    return text + "`";
  }

  // An order of members is the most exact of all advice.
  static std::string action(const std::vector<Part> &group, const JoinedRow *row) {
    std::vector<std::pair<std::string, std::string>> actions; // with the tool
    auto add = [&](const std::string &tool, const std::string &text) {
      if (!text.empty() && std::none_of(actions.begin(), actions.end(),
                                        [&](const auto &each) { return each.second == text; }))
        actions.emplace_back(tool, text);
    };
    const bool is_about_lines = std::any_of(group.begin(), group.end(), is_space);
    const std::vector<std::string> first =
        row && is_about_lines ? row->first_members() : std::vector<std::string>();
    if (!is_space(group.front()))
      add(group.front().tool, group.front().finding.action);
    if (!first.empty())
      add("fields", fmt::format("put {} first in `{}`{}", names_text(first), row->type,
                                row->fields->declarations().names.empty()
                                    ? ""
                                    : fmt::format(" (`assay fields apply {} FILES`)",
                                                  row->fields->record.name)));
    for (const Part &part : group) {
      // The order has been said, and says more than that there is one.
      const bool is_vague = part.finding.gain == Gain::kLineUse && part.finding.rule != "split";
      // Memory that nobody touches takes no room in a cache.
      const bool is_beside =
          part.finding.gain == Gain::kMemory && group.front().finding.gain != Gain::kMemory;
      if (part.finding.rule != "does_not_fit" && !is_beside && (first.empty() || !is_vague))
        add(part.tool, part.finding.action);
    }
    if (actions.empty()) // that it does not fit tells what is wrong rather than what to do
      add(group.front().tool, group.front().finding.action);
    constexpr size_t kMaxActions = 2;
    std::string text;
    for (size_t i = 0; i < std::min(actions.size(), kMaxActions); i++)
      text += (i == 0                                     ? ""
               : actions[i].first == actions[i - 1].first ? "; or "
                                                          : "; also ") +
              actions[i].second;
    return text;
  }

  std::vector<ToolFact> facts(const std::vector<Part> &group, const JoinedRow *row,
                              const std::string &said) const {
    std::map<std::string, std::vector<std::string>> by_tool;
    if (row)
      row_facts(*row, std::any_of(group.begin(), group.end(), is_layout), by_tool);
    // What these say of a row is what their findings say, in other words.
    for (const Part &part : group)
      if (part.tool == "fields" || part.tool == "objects")
        by_tool.erase(part.tool);
    for (const Part &part : group) {
      if (part.finding.message == said ||
          (part.finding.gain == Gain::kWorkingSet && row && row->set))
        by_tool[part.tool].push_back(part.finding.evidence);
      else
        by_tool[part.tool].push_back(part.finding.message);
    }
    if (row && row->fields && by_tool.count("fields") && !bytes_at_a_time(row))
      by_tool["fields"].emplace_back("where its objects lie was not seen: they may all be in L1");
    std::vector<ToolFact> list;
    for (const ToolState &tool : result_.tools) {
      auto texts = by_tool.find(tool.name);
      if (texts == by_tool.end())
        continue;
      constexpr size_t kMaxTexts = 4;
      std::string text;
      for (size_t i = 0; i < std::min(texts->second.size(), kMaxTexts); i++)
        text += (i ? "; " : "") + texts->second[i];
      list.push_back({tool.name, text});
    }
    return list;
  }

  void row_facts(const JoinedRow &row, bool is_about_layout,
                 std::map<std::string, std::vector<std::string>> &by_tool) const {
    if (row.heap) {
      const AssayHib &h = row.heap->all;
      std::string text = fmt::format("{}, {} in all, {}{} each",
                                     base::format_counted(double(h.alloc_count), "object"),
                                     bytes(double(h.size_total)),
                                     result_.from.heap->peak_is_divided
                                         ? bytes(double(row.heap->at_peak_bytes)) + " at the peak, "
                                         : "",
                                     base::format_duration_us(row.heap->mean_lifetime_us()));
      if (row.accesses_counted)
        text += ", " + base::format_counted(double(row.heap->accesses()), "access", "accesses");
      by_tool["heap"].push_back(text);
    }
    if (row.set) {
      std::string text = fmt::format("in the working set {} of the time, {} at most",
                                     base::format_share(row.set->time_share),
                                     bytes(double(row.set->most_lines * result_.line_bytes)));
      if (const int cache = cache_of(&row); (cache == 1 || cache == 2) && is_about_layout)
        text += fmt::format(", which L{} holds: another layout of it saves little", cache);
      by_tool["workingset"].push_back(text);
    }
    if (row.words && row.words->in_lines)
      by_tool["objects"].push_back(fmt::format("{} of the bytes of its used lines are used",
                                               base::format_share(row.used_share().value_or(0))));
    if (row.fields && (row.fields->advice.is_worth_it || is_about_layout)) {
      const LayoutAdvice &advice = row.fields->advice;
      by_tool["fields"].push_back(fmt::format(
          "{:.2f} lines an access{}", advice.lines_before,
          advice.is_worth_it ? fmt::format(", {:.2f} in the advised order", advice.lines_after)
          : advice.is_sweep  ? ", one object after the other: no order is better"
                             : ", no order is better"));
    }
  }

  JoinedResult &result_;
  TextFilter filter_;
  std::vector<Part> parts_;
  std::map<std::string, size_t> types_;
  std::map<std::pair<std::string, std::string>, size_t> sites_;
};

} // namespace

void join_findings(JoinedResult &result) {
  FindingsJoin(result).find();
}

} // namespace analyze
