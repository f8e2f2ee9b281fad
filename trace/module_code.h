// What is shared by all routines of a module while it is moved.
#pragma once

#include "trace/assembler.h"
#include "trace/instructions.h"
#include "trace/moved_code.h"
#include "trace/r11.h"
#include "trace/unwind.h"

#include <unordered_map>
#include <vector>

namespace trace {

inline constexpr uint32_t kLogs = 2; // groups, accesses

struct ModuleCode {
  ModuleCode(const binary::Program &of, const MoveSettings &how)
      : program(of), settings(how), log(how.log), unwind(of.executable(), fixups) {}

  const binary::Program &program;
  const MoveSettings &settings;
  uint32_t log; // what the routine logs that is moved now: as the settings say, or nothing
  Assembler code;
  std::vector<AssayMovedFixup> fixups;
  std::vector<AssayMovedJump> jumps;
  std::vector<AssayMovedReturn> returns;
  std::vector<Group> groups, singles;
  std::vector<Skeleton> skeletons;
  std::vector<uint32_t> group_fixups, single_fixups; // where their numbers stand
  struct Reference {
    uint32_t at;
    uint64_t target;
  };
  std::vector<Reference> references;              // to other routines
  std::unordered_map<uint64_t, uint32_t> entries; // of moved ones
  UnwindTables unwind;
  InstructionDecoder decoder;
  uint64_t image_begin = 0, image_end = 0;
  R11 r11;

  // 0: groups, 1: accesses.
  std::vector<uint32_t> logs() const {
    std::vector<uint32_t> wanted;
    for (uint32_t number = 0; number < kLogs; number++)
      if (log & 1u << number)
        wanted.push_back(number);
    return wanted;
  }
};

} // namespace trace
