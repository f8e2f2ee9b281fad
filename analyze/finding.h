// A finding: a sentence with a place, a size, evidence and an action. Findings are ranked by what
// they could save and are silent on noise.
#pragma once

#include <string>
#include <vector>

namespace analyze {

struct Saving {
  double amount = 0;
  std::string unit; // "bytes", "byte_seconds", "allocations", "lines"
};

struct Finding {
  std::string rule;     // "cold_bytes", "churn", …: a page in docs/ says how it is computed
  std::string message;  // one sentence
  std::string location; // "function file:line"
  Saving saves;
  double weight =
      0; // rank, comparable between rules: the share of the whole that is affected, 0..1
  std::string evidence;
  std::string action;
  std::vector<std::string> qualified_by; // losses that make it less certain, by name
};

} // namespace analyze
