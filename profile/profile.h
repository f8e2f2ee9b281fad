// What was measured, as data: the model that analyses work on, without symbols and without
// knowledge of the file that it came from.
//
// A Profile describes one process or the sum of several. It is always in canonical form: modules,
// types, stacks and contexts are sorted by content, never by the order in which they were met, so
// that equal measurements compare equal and a merge does not depend on the order of its inputs.
// (Only the first_* and last_* fields of a heap info block keep the order of merging.)
//
// Units: times in microseconds since the start of their process, sizes in bytes.
#pragma once

#include "abi/records.h"
#include "abi/sites.h"
#include "profile/fields.h"
#include "profile/heap.h"
#include "profile/ids.h"
#include "profile/objects.h"
#include "profile/values.h"
#include "profile/workingset.h"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace profile {

// An instrumented translation unit.
struct Unit {
  std::string source;          // as the compiler was given it
  std::vector<uint32_t> modes; // of tools, by bit (abi/sites.h)
  uint64_t tools = 0;          // abi/tools.h
  friend auto operator<=>(const Unit &, const Unit &) = default;
};

// A file that code came from; one entry for each build id, or for each path where there is none. Of
// several paths with one build id the alphabetically first is kept.
struct Module {
  std::string path;
  std::vector<uint8_t> build_id; // empty if it has none
  bool instrumented = false;
  std::vector<TypeId> types; // that it declares, in order
  std::vector<Unit> units;   // its instrumented translation units, in order
  std::string kept = {}; // the file of that time, where the run has kept it (profile/kept_files.h)
  friend bool operator==(const Module &, const Module &) = default;
};

struct Type {
  uint64_t hash = 0; // of name and layout; below 2^32 when only its short id is known
  std::string name;  // empty when only its short id is known
  uint64_t size = 0; // 0 if unknown
  friend auto operator<=>(const Type &, const Type &) = default;
};

struct Stack {
  std::vector<CodeLocation> frames; // innermost first
  bool cut = false;                 // outer frames are missing
  friend auto operator<=>(const Stack &, const Stack &) = default;
};

// Where a module was in memory, and when.
struct Mapping {
  ModuleId module;
  uint64_t start = 0, end = 0, bias = 0;
  uint64_t loaded_us = 0;
  std::optional<uint64_t> unloaded_us;
  friend auto operator<=>(const Mapping &, const Mapping &) = default;
};

struct Machine {
  uint32_t cpus = 0, page_bytes = 0, line_bytes = 0;
  uint64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0; // 0 if unknown
  std::string cpu_model, kernel, host;
  friend auto operator<=>(const Machine &, const Machine &) = default;
};

struct Ending {
  uint64_t reason = 0; // AssayEndReason
  uint64_t status = 0;
  uint64_t time_us = 0;
  friend auto operator<=>(const Ending &, const Ending &) = default;
};

// The program said where it was.
struct Mark {
  uint64_t time_us = 0;
  std::string name;
  friend auto operator<=>(const Mark &, const Mark &) = default;
};

struct Process {
  uint64_t start_unix_ns = 0;
  uint64_t pid = 0, parent_pid = 0;
  uint64_t tools = 0; // bits of abi/tools.def
  bool forked = false;
  std::string executable;
  std::vector<std::string> arguments; // argv[0] first
  std::optional<Machine> machine;
  std::string options;
  uint64_t counters = 0; // how accesses were counted: a sum of AssayCounters (abi/sites.h)
  std::vector<Mapping> mappings;
  std::vector<Mark> marks;          // by time
  std::optional<uint64_t> reset_us; // the program began anew: nothing measured before is here
  std::vector<TimelinePoint> timeline;
  std::optional<Walk> walk;
  std::optional<WorkingSet> workingset;
  std::optional<ObjectSampling> object_sampling;
  std::optional<Sampling> sampling;
  std::vector<Ending> ends; // none: it was killed, or is still running
  friend auto operator<=>(const Process &, const Process &) = default;
};

// Calls of assay_event with one name through one call stack.
struct Event {
  StackId stack;
  std::string name;
  uint64_t count = 0;
  uint64_t weight = 0; // sum, in the program's own unit
  friend auto operator<=>(const Event &, const Event &) = default;
};

struct Profile {
  std::vector<Process> processes; // by start time
  std::vector<Module> modules;
  std::vector<Type> types;
  std::vector<Stack> stacks;
  std::vector<HeapContext> heap;
  Fields fields;
  Values values;
  std::vector<Event> events;                 // by stack, then name
  std::vector<NonHeapBlock> non_heap;        // by kind, owner, offset; as of the last complete walk
  std::vector<ObjectGroup> object_groups;    // canonical order: as ObjectGroup is ordered
  std::vector<ObjectGlobals> object_globals; // by module
  std::map<uint32_t, uint64_t> losses; // kind (abi/losses.def) -> count, in the unit of the kind

  // Sentences about files that are not whole. Not part of what was measured: not compared, not written.
  struct Notes : std::vector<std::string> {
    size_t running = 0; // processes that still run, and write more
    friend bool operator==(const Notes &, const Notes &) { return true; }
  };
  Notes notes;

  const Stack &stack(StackId id) const { return stacks[id.v]; }
  // The file that a process was started from; null where it is none of the modules. Where several builds have one path,
  // the one that this process had mapped.
  const Module *program_of(const Process &process) const;
  // The types, stacks and modules by content; a canonical profile compares equal to any other that
  // was measured the same.
  friend bool operator==(const Profile &, const Profile &) = default;
};

// Reads and merges files, each a .assay file. A damaged tail becomes a loss and a note, and so does
// one of several files that cannot be read at all. Throws Failure when none can.
Profile read(const std::vector<std::string> &paths);

// The same, but runs of different programs stay apart: a profile for each build id of the executable
// (its path where there is none), in the order in which they first started. Files in which several
// programs were merged are one for each such set of programs.
std::vector<Profile> read_programs(const std::vector<std::string> &paths);

// One profile from bytes; `path` names them in messages.
Profile read_bytes(std::span<const std::byte> bytes, const std::string &path);

// Writes the container that read() takes: read(write(p)) == p. Throws Failure.
void write(const Profile &profile, const std::string &path);
std::vector<std::byte> write_bytes(const Profile &profile);

} // namespace profile
