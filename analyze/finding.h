// A finding: a sentence with a place, a size, evidence and an action. Findings are ranked by what
// they could save and are silent on noise.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace analyze {

struct Saving {
  double amount = 0;
  std::string unit; // "bytes", "byte_seconds", "allocations", "lines"
};

// What a finding is about, in names that all tools have, so that what several say of the same is found.
struct Subject {
  std::string type; // of objects; empty if unknown
  std::string site; // "build at tree.cc:16", where objects are allocated; of others the variable
  // Where code does it: of findings about code.
  std::string function, file;
  uint32_t line = 0;
  std::string members = {}; // of the type, where it is about some of them
};

// What it gains to act on a finding. Says how its weight compares with those of other tools'
// findings (analyze/joined_findings.cc).
enum class Gain {
  kTime,          // the weight is a share of the run's time
  kCalls,         // of malloc and free: saves.amount is their number
  kCopiedBytes,   // by realloc: saves.amount
  kMemory,        // that is held and not used; costs no time
  kLineUse,       // lines bring in what is not used: the weight is a share of what is accessed
  kWorkingSet,    // the weight is a share of time, in which more is used than a cache holds
  kLineTransfers, // of lines that threads write in turn: saves.amount is the number of changes
};

// No loss: what code does with memory that is not counted cannot be known.
inline constexpr const char *kUncountedUse = "uncounted_use";

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
  Subject about = {};
  Gain gain = Gain::kTime;
  double saved_share = 1; // of the weight, the most that acting on it can save
};

// Those of the losses that every measurement suffers from, such as a run that was killed: what was
// measured is less than what happened.
std::map<uint32_t, uint64_t> general_losses(const std::map<uint32_t, uint64_t> &losses);

// The names of the losses that were met and that make a finding less certain: the general ones, and the given kinds.
std::vector<std::string> losses_among(const std::map<uint32_t, uint64_t> &losses,
                                      std::span<const uint32_t> kinds);

} // namespace analyze
