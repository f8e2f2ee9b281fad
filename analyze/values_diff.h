// What two recordings of values differ in: shares, not counts, which depend on how long was recorded.
#pragma once

#include "analyze/values.h"

#include <optional>
#include <string>
#include <vector>

namespace analyze {

struct ValueChange {
  const ValueFunction *function = nullptr;       // of the newer recording
  const ValueInstruction *instruction = nullptr; // likewise
  std::string subject;                           // "argument 1 (rdi)", "stride", "taken"
  ValueShare before,
      after; // of one value: a frequent one whose share has changed much
  std::optional<ValueShare>
      instead;                     // the most frequent one afterwards, if it has come in its place
  const ValueList *list = nullptr; // of the newer recording
  bool is_stride = false;
  double weight = 0; // change of the share, times the function's share of samples
};

struct TimeChange {
  std::string function;
  std::string file;             // its name; of the programs that were run, if they have two, both
  double before = 0, after = 0; // share of all interrupts
};

struct ValuesDiff {
  uint64_t samples_before = 0, samples_after = 0;
  std::vector<ValueChange> values;   // most weight first
  std::vector<TimeChange> functions; // largest change first
  // The programs that were run, if they have other names and were compared as one file; else empty.
  std::string program_before, program_after;
  bool same() const { return values.empty() && functions.empty(); }
};

// Only what is no chance: intervals, made half as wide again, that do not touch, and five points of
// a value's share, or one of a function's time, at least. Files are the same where their names are;
// and the programs that were run are, if neither recording has a file of the other one's name.
// Instructions are the same where their
// place in a file with one build id is; of different builds, where they read the same and are the
// same one of those that do, in functions of one name. Addresses of memory, which differ from run
// to run, are left out. Keeps pointers into `after`.
ValuesDiff diff(const ValuesResult &before, const ValuesResult &after);

} // namespace analyze
