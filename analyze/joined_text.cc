#include "analyze/joined_text.h"

#include "base/shell_words.h"
#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace analyze {
namespace {

using Part = JoinedFinding::Part;

constexpr double kMinPhaseShare = 0.25; // of the lines of a phase, to be named with it

// About how objects lie in lines.
bool is_layout(const Part &part) {
  return part.finding.gain == Gain::kLineUse;
}

// That its members shall lie together: what an order of them says better.
bool is_about_order(const Part &part) {
  const Finding &finding = part.finding;
  return is_layout(part) && (finding.rule == "wasted_lines" || finding.rule == "fragmented" ||
                             finding.rule == "order" || finding.rule == "padding");
}

// Of an action that stands behind the headline of another finding: at which place of the code, and why there.
std::string placed_action(const Part &part) {
  const Finding &finding = part.finding;
  const std::string begin = finding.location + ": ";
  if (finding.about.function.empty() || finding.location.empty() || finding.action.empty())
    return finding.action;
  return fmt::format("at {}{}, {}", finding.location,
                     finding.message.starts_with(begin)
                         ? fmt::format(" ({})", finding.message.substr(begin.size()))
                         : "",
                     finding.action);
}

std::string bytes(double amount) {
  return base::format_bytes(amount);
}

// "phase 3 (62 % of the run)", "the run".
std::string which(const JoinedPhase &phase, bool is_of_several) {
  const std::string whole =
      is_of_several ? fmt::format("process {}", phase.set->process.pid) : "the run";
  return phase.whole_run() ? whole
                           : fmt::format("phase {} ({} of {})", phase.number,
                                         base::format_share(phase.time_share()), whole);
}

std::string fit(const JoinedPhase &phase) {
  const WorkingSetResult &set = *phase.set;
  const uint64_t at_a_time = set.bytes(phase.phase->mean_lines);
  const CacheFit *exceeded = nullptr;
  for (const CacheFit &cache : set.caches)
    if (cache.name != "TLB" && !cache.holds(at_a_time) &&
        (!exceeded || cache.bytes > exceeded->bytes))
      exceeded = &cache;
  std::string text;
  const auto in_all = double(set.bytes(phase.phase->lines));
  if (double(at_a_time) < .9 * in_all)
    text = fmt::format(" at a time, {} in all", bytes(in_all));
  if (exceeded)
    text += fmt::format(", which does not fit in {} ({})", exceeded->name,
                        bytes(double(exceeded->bytes)));
  else if (!phase.fits.empty())
    text += fmt::format(", which fits in {}", phase.fits);
  return text;
}

std::string used_text(const JoinedRow &row) {
  const auto share = row.used_share();
  if (!share)
    return "";
  return row.words && row.words->in_lines
             ? fmt::format(", of which {} of each line is used", base::format_share(*share))
             : fmt::format(", of whose {}-byte blocks {} are touched", kBlockBytes,
                           base::format_share(*share));
}

std::string names_text(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); i++)
    text += (i == 0 ? "`" : i + 1 == names.size() ? "` and `" : "`, `") + names[i];
  return text + "`";
}

} // namespace

bool is_space(const Part &part) {
  const Gain gain = part.finding.gain;
  return gain == Gain::kLineUse || gain == Gain::kWorkingSet || gain == Gain::kMemory;
}

std::string JoinedText::message(const Parts &group, const JoinedRow *row) const {
  const Part &lead = group.front();
  if (!row || !row->set || !is_space(lead))
    return lead.finding.message;
  const JoinedPhase &phase = result_.phases[row->set->phase];
  const Phase &lines = *phase.phase;
  if (double(row->set->phase_lines) < kMinPhaseShare * double(lines.mean_lines))
    return lead.finding.message;
  return fmt::format(
      "{} works on {}{}; {} of it is {}{}", which(phase, result_.from.workingsets->size() > 1),
      bytes(double(phase.set->bytes(lines.mean_lines))), fit(phase),
      bytes(double(phase.set->bytes(row->set->phase_lines))), subject_text(*row), used_text(*row));
}

std::string JoinedText::action(const Parts &group, const JoinedRow *row) {
  std::vector<std::pair<std::string, std::string>> actions; // with the tool
  std::set<std::string> said;                               // of them, wherever they are to be done
  auto add = [&](const std::string &tool, const std::string &text, const std::string &placed = "") {
    if (!text.empty() && said.insert(text).second)
      actions.emplace_back(tool, placed.empty() ? text : placed);
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
                                                base::shell_word(row->fields->record.name))));
  // The fields were seen, and lie as well as they can: to put others next to each other is no advice.
  const bool is_ordered = row && first.empty() && row->fields && row->fields->set_count &&
                          !row->fields->advice.is_worth_it;
  auto add_part = [&](const Part &part) {
    // The order has been said, and says more than that there is one. If there is none, what else would help the layout
    // stays.
    const bool is_said = (is_ordered && is_about_order(part)) ||
                         (!first.empty() && is_layout(part) && part.finding.rule != "split");
    // Memory that nobody touches takes no room in a cache.
    const bool is_beside =
        part.finding.gain == Gain::kMemory && group.front().finding.gain != Gain::kMemory;
    if (part.finding.rule != "does_not_fit" && !is_beside && !is_said)
      add(part.tool, part.finding.action, &part == &group.front() ? "" : placed_action(part));
  };
  auto add_no_order = [&] {
    if (actions.empty() && is_ordered)
      add("fields", "no other order of its members helps: keep what is seldom used of it "
                    "elsewhere, behind a pointer, or make it smaller");
  };
  // A headline about the layout wants an action about it, if a lighter one than others.
  if (is_layout(group.front())) {
    for (const Part &part : group)
      if (is_layout(part))
        add_part(part);
    add_no_order();
  }
  for (const Part &part : group)
    add_part(part);
  add_no_order();
  if (actions.empty()) // that it does not fit tells what is wrong rather than what to do
    add(group.front().tool, group.front().finding.action);
  constexpr size_t kMaxActions = 2;
  std::string text;
  for (size_t i = 0; i < std::min(actions.size(), kMaxActions); i++)
    text += (i == 0                                     ? ""
             : actions[i].first == actions[i - 1].first ? "; or "
             : actions[i].second.starts_with("at ")     ? "; also, "
                                                        : "; also ") +
            actions[i].second;
  return text;
}

std::vector<ToolFact> JoinedText::facts(const Parts &group, const JoinedRow *row,
                                        const std::string &said) const {
  FactsOfTools by_tool;
  if (row)
    row_facts(*row, std::any_of(group.begin(), group.end(), is_layout), by_tool);
  // What these say of a row is what their findings say, in other words.
  for (const Part &part : group)
    if (part.tool == "fields" || part.tool == "objects")
      by_tool.erase(part.tool);
  for (const Part &part : group) {
    if (part.finding.message == said || (part.finding.gain == Gain::kWorkingSet && row && row->set))
      by_tool[part.tool].push_back(part.finding.evidence);
    else
      by_tool[part.tool].push_back(part.finding.message);
  }
  if (row && row->fields && by_tool.count("fields") && !worth_.bytes_at_a_time(row))
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

void JoinedText::row_facts(const JoinedRow &row, bool is_about_layout,
                           FactsOfTools &by_tool) const {
  if (row.heap) {
    const AssayHib &h = row.heap->all;
    std::string text = fmt::format("{}, {} in all, {}{} each",
                                   base::format_counted(double(h.alloc_count), "object"),
                                   bytes(double(h.size_total)),
                                   result_.from.heap->peak_is_divided
                                       ? bytes(double(row.heap->at_peak_bytes)) + " at the peak, "
                                       : "",
                                   base::format_duration_us(row.heap->mean_lifetime_us()));
    if (row.has_accesses())
      text += ", " + base::format_counted(double(row.heap->accesses()), "access", "accesses");
    by_tool["heap"].push_back(text);
  }
  if (row.set) {
    std::string text = fmt::format("in the working set {} of the time, {} at most",
                                   base::format_share(row.set->time_share),
                                   bytes(double(row.set->most_lines * result_.line_bytes)));
    if (const int cache = worth_.cache_of(&row); (cache == 1 || cache == 2) && is_about_layout)
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

} // namespace analyze
