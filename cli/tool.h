// What a tool has to say in the commands that ask every tool: run, snapshot, check, diff.
#pragma once

#include "abi/control.h"
#include "analyze/frame.h"
#include "analyze/joined.h"
#include "analyze/ownership.h"
#include "image/symbols.h"
#include "profile/profile.h"
#include "report/document.h"
#include "report/table.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cli {

struct ToolQuery {
  std::string filter;
  analyze::Wrappers wrappers;
  bool for_diff =
      false; // what diff() needs is enough: two profiles of many contexts fit where one does
  std::vector<std::pair<std::string, uint64_t>> caches = {}; // name, bytes: beside the machine's
};

// What changed between two answers. `top` limits the rows; 0: all.
struct ToolDiff {
  bool same;
  std::function<report::Json(unsigned top)> json;
  std::function<std::string(unsigned top, const report::Style &style)> text;
};

// The answer to the tool's question for one profile.
class ToolAnswer {
public:
  virtual ~ToolAnswer() = default;
  // Into the document on which conditions are judged, which refers to this answer afterwards.
  virtual void put(report::Document &document) const = 0;
  // Paths of that document that must not grow against an older answer of the same tool; of a tool whose numbers are
  // others in each run, none.
  virtual std::vector<std::string> growth(const ToolAnswer &older) const = 0;
  // What of the baseline cannot be compared, because only that has measured it: "accesses"; null if there is nothing.
  virtual const char *only_in(const ToolAnswer &) const { return nullptr; }
  virtual ToolDiff diff(const ToolAnswer &newer) const = 0;
  // Whether the query's filter took everything away.
  virtual bool nothing_matches() const { return false; }
  // For a join with what other tools say, which refers to this answer afterwards.
  virtual void put(analyze::ToolResults &results) const = 0;
};

// One for each line of abi/tools.def, in cli/NAME_tool.cc.
struct Tool {
  const char *name;
  uint64_t bit;
  const char *subject; // what it measures: "a heap"
  // After a run, in a few words: "12 allocations of 3 KiB". Of a profile that the tool measured.
  std::string (*summary)(const profile::Profile &profile);
  // The same of a program that goes on.
  std::string (*progress)(const profile::Profile &profile, const AssayControl &now);
  // Whether the key at the top of a condition's path is the tool's.
  bool (*has_key)(const std::string &key);
  // One sentence: why the profile has no answer.
  std::string (*why_none)(const profile::Profile &profile);
  // Null if there is none. Tools that a program has by default always have one: its document is the frame for the
  // others, with program, losses and coverage.
  std::unique_ptr<ToolAnswer> (*answer)(const profile::Profile &profile, image::Symbols &symbols,
                                        const ToolQuery &query);
};

std::span<const Tool *const> tools();

} // namespace cli
