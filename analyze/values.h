// `assay values`: which instructions compute the same values again and again?
//
// Samples say where time goes (interrupts) and what the instructions after them computed (values).
// A share is never said without its interval of 95 % confidence, which is computed over samples,
// not over values: those of one sample depend on each other.
//
// Source: value-sampling.txt; docs/hotlists.md.
#pragma once

#include "analyze/finding.h"
#include "analyze/frame.h"
#include "image/symbols.h"
#include "profile/profile.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace analyze {

struct ValueShare {
  uint64_t value = 0;
  double share = 0, low = 0, high = 0;
  std::string
      name; // of a place in code: "sort+0x12"; of a level of the memory hierarchy: "L1"; empty of others
};

// The values of one kind at one instruction.
struct ValueList {
  unsigned kind = 0;   // enum assay_value_kind
  std::string subject; // "rax", "load", "argument 1 (rdi)", "taken", "address", "caller" …
  unsigned bytes = 8;  // of a value
  uint64_t values = 0, samples = 0; // values, and in how many samples they came
  std::vector<ValueShare> hot;      // most frequent first; empty if none is frequent beyond doubt
  std::vector<ValueShare>
      strides;                 // of addresses: from one execution to the next in the same sample
  uint64_t stride_samples = 0; // with such a next execution
  double taken_share =
      0; // of branches: how many were taken; of few that are often taken `hot` says nothing
};

struct ValueInstruction {
  uint64_t offset = 0; // in the module's ELF image
  std::string text;    // Intel syntax
  size_t length = 0;   // bytes
  uint64_t interrupts = 0, executions = 0;
  std::vector<ValueList> lists;
  std::string file; // of its source line; empty if that is not known
  uint32_t line = 0;
  bool is_instrumentation = false; // Assay's own, in a program that was built with assay-cc
};

struct ValueFunction {
  uint32_t module = 0; // index in Profile::modules
  std::string module_path;
  std::string name, linkage_name, file;
  // What tells it from others of its name in the module, "a.c"; empty: it has the name alone.
  std::string told_apart;
  uint32_t line = 0;
  uint64_t interrupts = 0, executions = 0;
  std::vector<ValueInstruction> instructions; // by offset
};

struct ValueExecutable {
  std::string path, build_id;
  uint64_t interrupts = 0, executions = 0;
};

struct ValueConflict {
  unsigned kind = 0; // enum AssayConflictKind
  const ValueInstruction *store = nullptr, *load = nullptr;
  const ValueFunction *store_function = nullptr, *load_function = nullptr;
  uint64_t count = 0;
  double share = 0; // of the load's executions
};

struct ValuesResult {
  profile::Process process; // the first that was recorded
  std::string program_build_id;
  uint64_t samples = 0;
  uint64_t duration_us = 0;
  std::vector<std::pair<std::string, uint64_t>>
      ends; // how interpreting ended: meaning, samples; most frequent first
  std::vector<ValueExecutable> executables; // most interrupts first
  std::vector<ValueFunction> functions;     // most interrupts first
  std::vector<ValueConflict> conflicts;     // most frequent first
  bool has_conflicts = false;               // were stores and loads compared?
  bool has_latencies = false;               // were loads timed?
  std::vector<std::string> programs;        // program_names()
  uint32_t collectors = 0;                  // a bit for each number of enum AssayCollector
  std::vector<Finding> findings;
  std::map<uint32_t, uint64_t> losses;
  std::vector<std::string> notes;
};

struct ValuesQuery {
  std::string executable; // only those whose path contains it
  std::string function;   // only those whose name contains it
  // Of `function`: where a function has exactly that name, or that linkage name, only those that do.
  bool prefers_whole_name = false;
};

// Whether the profile has sampled values; a sentence that says why not, if it has none.
bool measures_values(const profile::Profile &profile);
std::string why_no_values(const profile::Profile &profile);

ValuesResult values(const profile::Profile &profile, image::Symbols &symbols,
                    const ValuesQuery &query);

// Of a value of so many bytes: as a number where it is a small one, else in hexadecimal digits. Of
// four bytes and more it may be negative.
std::string number_text(uint64_t value, unsigned bytes);

// What is worth changing, by what it may be worth; of the result's own functions.
std::vector<Finding> value_findings(const ValuesResult &result);

} // namespace analyze
