// Writes a statically linked executable again with the runtime of `assay trace` behind it (abi/carried_runtime.h), which a loader would
// have brought into another one. Its own code and data stay where they are.
#pragma once

#include <cstdint>
#include <filesystem>

namespace trace {

struct StaticProgram {
  uint64_t code_room = 0; // bytes of memory for moved code
};

// `runtime`: libassay_carried.so. Throws Failure, one sentence, if the program cannot carry it, or `to` cannot be written.
StaticProgram write_static_program(const std::filesystem::path &program,
                                   const std::filesystem::path &runtime,
                                   const std::filesystem::path &to);

} // namespace trace
