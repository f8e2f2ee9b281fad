// What is said of findings that are about one thing: the sentence, the advice, and what each tool knows of it.
#pragma once

#include "analyze/joined.h"
#include "analyze/joined_worth.h"

#include <string>
#include <vector>

namespace analyze {

// About how much memory is used, not about how often something is done.
bool is_space(const JoinedFinding::Part &part);

class JoinedText {
public:
  // Both must live as long; the result is complete but for its findings.
  JoinedText(const JoinedResult &result, const JoinedWorth &worth)
      : result_(result), worth_(worth) {}

  // Of parts that are about one thing, most weight first, and the row that has the facts; null: none has.
  using Parts = std::vector<JoinedFinding::Part>;
  // The sentence that no tool alone can say, if the row fills a phase; else what the first one says.
  std::string message(const Parts &group, const JoinedRow *row) const;
  // An order of members is the most exact of all advice.
  static std::string action(const Parts &group, const JoinedRow *row);
  // `said` is the message: what it says is not said again.
  std::vector<ToolFact> facts(const Parts &group, const JoinedRow *row,
                              const std::string &said) const;

private:
  using FactsOfTools = std::map<std::string, std::vector<std::string>>;
  void row_facts(const JoinedRow &row, bool is_about_layout, FactsOfTools &by_tool) const;

  const JoinedResult &result_;
  const JoinedWorth &worth_;
};

} // namespace analyze
