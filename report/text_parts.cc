#include "report/text_parts.h"

#include "base/shell_words.h"
#include "base/units.h"
#include "profile/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

namespace report {

std::string command_text(const profile::Process &process) {
  std::vector<std::string> words = process.arguments;
  if (words.empty())
    words.emplace_back();
  words.front() = process.executable;
  return words.front().empty() ? "" : command_text(words);
}

std::string command_text(const std::vector<std::string> &words) {
  constexpr unsigned kColumns = 400; // of a line above a report; JSON has all
  return shortened(printable(base::shell_command(words)), kColumns);
}

std::string command_text(const profile::Process &process,
                         const std::vector<std::string> &programs) {
  constexpr size_t kMax = 4;
  if (programs.size() < 2)
    return command_text(process);
  const size_t shown = std::min(programs.size(), kMax);
  std::string text = fmt::format("{}", fmt::join(programs.begin(), programs.begin() + shown, ", "));
  if (shown < programs.size())
    text += fmt::format(" and {} more", programs.size() - shown);
  return printable(text);
}

std::string findings_text(const std::vector<analyze::Finding> &findings, size_t top,
                          const Style &style) {
  if (findings.empty())
    return "";
  std::string text = "\n" + style.strong("What is worth changing?") + "\n";
  size_t shown = 0;
  for (const analyze::Finding &finding : findings) {
    if (shown++ == top)
      break;
    text += fmt::format("  {}. {}\n", shown, printable(finding.message));
    text +=
        fmt::format("     {}\n     {} {}\n", finding.evidence, style.strong("do:"), finding.action);
    if (!finding.qualified_by.empty())
      text +=
          fmt::format("     less certain because of: {}\n", fmt::join(finding.qualified_by, ", "));
  }
  return text + more_text(findings.size() - std::min(findings.size(), top), style);
}

std::string more(size_t left, std::string_view option) {
  return fmt::format("{} more; {} shows {}", left, option, left == 1 ? "it" : "them");
}

std::string more_text(size_t left, const Style &style) {
  return left ? style.faint("  " + more(left, "--json")) + "\n" : "";
}

namespace {

// "object" of "objects", "process" of "processes".
std::string singular(const std::string &word) {
  for (const char *ending : {"sses", "xes", "ches", "shes"})
    if (word.ends_with(ending))
      return word.substr(0, word.size() - 2);
  return word.ends_with('s') ? word.substr(0, word.size() - 1) : word;
}

// Of a loss's unit: "set of fields" of "sets of fields", "pool or event" of "pools or events".
std::string one_of(std::string_view unit) {
  const size_t end = std::min(unit.find(" of "), unit.size());
  std::istringstream words{std::string(unit.substr(0, end))};
  std::string one;
  for (std::string word; words >> word;)
    one += (one.empty() ? "" : " ") + singular(word);
  return one.append(unit.substr(end));
}

} // namespace

std::string loss_text(uint32_t kind, uint64_t times, const std::string &names) {
  auto facts = profile::loss_kind(kind);
  return printable(fmt::format("  {}{}: {}; {}",
                               base::with_noun(times, one_of(facts.unit), facts.unit), names,
                               facts.what, facts.remedy)) +
         "\n";
}

std::string losses_text(const std::map<uint32_t, uint64_t> &losses) {
  std::string lines;
  for (auto [kind, times] : losses)
    lines += loss_text(kind, times);
  return lines;
}

std::string uncounted_modules_text(uint64_t measured, uint64_t all) {
  if (measured >= all)
    return "";
  return fmt::format("  {} of {} modules {} built with assay-cc; accesses by the others are not "
                     "counted\n",
                     measured, all, measured == 1 ? "was" : "were");
}

} // namespace report
