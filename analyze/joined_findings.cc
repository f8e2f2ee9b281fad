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
// What is one thing: the same allocation site, or the same type: but of several sites of a type
// one, that of the heaviest finding, stands with what is said of the type as such, and the others
// alone. Else a vector that reserves too much would be told what to do about a hundred thousand
// small objects elsewhere. A finding about code belongs to the type whose field its line accesses,
// else to the site in its function, else it stands alone. Refused: one item for each function.
// `main` allocates everything in small programs, and an item that says five things says nothing.

#include "analyze/joined_text.h"
#include "analyze/joined_worth.h"
#include "analyze/place.h"
#include "analyze/regular_expression.h"
#include "base/stable_sort.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace analyze {
namespace {

using Part = JoinedFinding::Part;

constexpr double kAgreement = 0.1; // of the rank of a second tool

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
  FindingsJoin(JoinedResult &result, const JoinQuery &query)
      : result_(result), filter_(query.filter), worth_(result), text_(result, worth_) {
    if (query.matching)
      matching_.emplace(*query.matching);
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
        part.weight = worth_.of(part.finding) * from.run_share;
        if (from.tool == "fields" && result_.shared_names.contains(part.finding.about.type))
          part.finding.about.type += " (" + place_of(part.finding) + ")";
        parts_.push_back(std::move(part));
      }
  }

  // "list.c:2" of "entry list.c:2".
  static std::string place_of(const Finding &finding) {
    return finding.location.substr(finding.location.rfind(' ') + 1);
  }

  bool is_kept(const Part &part) const {
    const Finding &finding = part.finding;
    const Subject &about = finding.about;
    if (matching_ ? matching_->has_row(about) : part.is_filtered)
      return true;
    for (const std::string &name :
         {finding.location, about.type, part.type, about.site, about.function, about.file})
      if (filter_.keeps(name))
        return true;
    return false;
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
    const std::map<std::string, std::string> first_sites = heaviest_sites();
    for (size_t i = 0; i < parts_.size(); i++) {
      const Subject &about = parts_[i].finding.about;
      if (names_objects(about.type) &&
          (about.site.empty() || about.site == first_sites.at(about.type)))
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

  // Of each type the site of its heaviest finding that is about a site.
  std::map<std::string, std::string> heaviest_sites() const {
    std::map<std::string, const Part *> heaviest;
    for (const Part &part : parts_) {
      if (part.finding.about.site.empty())
        continue;
      const Part *&best = heaviest[part.finding.about.type];
      if (!best || part.weight > best->weight)
        best = &part;
    }
    std::map<std::string, std::string> sites;
    for (const auto &[type, part] : heaviest)
      sites.emplace(type, part->finding.about.site);
    return sites;
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
    const JoinedRow *by_type = worth_.type_row(type);
    if (sites.size() == 1) {
      Subject about = first->finding.about;
      if (about.type.empty())
        about.type = type;
      return worth_.site_row(about);
    }
    if (!by_type && first)
      return worth_.site_row(first->finding.about);
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

  // Several processes say the same: the one with the most of it says it for all. Their shares of the run add up.
  static void add_up_processes(std::vector<Part> &group) {
    using Same = std::tuple<std::string, std::string, std::string, std::string, std::string,
                            uint32_t, std::string>;
    std::map<Same, double> weights;
    auto same = [](const Part &part) {
      const Subject &about = part.finding.about;
      return Same{part.tool,  part.finding.rule, about.type,    about.members,
                  about.site, about.line,        about.function};
    };
    for (const Part &part : group)
      weights[same(part)] += part.weight;
    std::set<Same> said;
    std::erase_if(group, [&](Part &part) {
      part.weight = std::min(weights[same(part)], 1.0);
      return !said.insert(same(part)).second;
    });
    base::stable_sort(group, [](const Part &a, const Part &b) { return a.weight > b.weight; });
  }

  void put(std::vector<Part> group) {
    base::stable_sort(group, [](const Part &a, const Part &b) { return a.weight > b.weight; });
    add_up_processes(group);
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
    joined.finding.message = text_.message(group, row);
    joined.finding.action = text_.action(group, row);
    joined.facts = text_.facts(group, row, joined.finding.message);
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

  JoinedResult &result_;
  TextFilter filter_;
  std::optional<JoinedWorth> matching_; // the rows that are kept
  JoinedWorth worth_;
  JoinedText text_;
  std::vector<Part> parts_;
};

} // namespace

void join_findings(JoinedResult &result, const JoinQuery &query) {
  FindingsJoin(result, query).find();
}

} // namespace analyze
