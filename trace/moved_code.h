// Moves the functions of an executable or shared object: the same instructions at another place,
// with others between them that log what the addresses of their accesses follow from
// (abi/moved_code.h).
//
// Only what is position dependent changes: jumps, calls, and operands relative to rip. Tables of
// `switch` statements and labels stay as they are; what they lead to in the original is overwritten
// with jumps to the moved blocks. A function that cannot be moved stays as it is, and says why.
#pragma once

#include "abi/moved_code.h"
#include "abi/trace_ring.h"
#include "binary/program.h"
#include "trace/groups.h"
#include "trace/movability.h"
#include "trace/skeleton.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trace {

struct MovedFunction {
  struct Part {
    uint64_t begin = 0, bytes = 0;
  };
  std::string name; // linkage name; may be empty
  uint64_t address = 0;
  uint32_t bytes = 0;
  WhyUnmoved why = WhyUnmoved::moved;
  std::string detail;                // more of it, may be empty
  uint32_t accesses = 0, logged = 0; // instructions' accesses; those that are logged
  uint32_t values = 0, branches = 0; // that they follow from
  std::vector<Part> apart;           // code of it that lies elsewhere (`.cold`)
};

struct MovedModule {
  std::vector<MovedFunction> functions;
  std::vector<Group> groups; // by number
  std::vector<Skeleton> skeletons;
  uint32_t singles = 0;        // the last ones are of one access each, and compared with the others
  std::vector<std::byte> file; // abi/moved_code.h; empty if nothing could be moved
};

struct MoveSettings {
  uint32_t log = ASSAY_LOG_groups; // sum of ASSAY_LOG_*
  bool plans = true; // values are shared by whole functions where that can be, not by blocks alone
  // Every iteration of a loop logs something, so that a thread notices soon where a part of the run begins or ends.
  bool each_iteration = false;
  // Whether a function is to be moved; all, if empty.
  std::function<bool(const binary::Routine &)> chosen;
  // Whether somebody still waits for the code, asked now and then; true, if empty.
  std::function<bool()> is_wanted;
};

// Moves each function that can be moved, and says of the others why not. Takes microseconds an
// instruction, so seconds for large files. Throws Failure where the code is not wanted any more.
MovedModule move_code(const binary::Program &program, const MoveSettings &settings);

} // namespace trace
