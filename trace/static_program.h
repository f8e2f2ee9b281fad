// Writes a statically linked executable again with the runtime of `assay trace` behind it
// (abi/carried_runtime.h), which a loader would have brought into another one. Its own code and
// data stay where they are.
#pragma once

#include <filesystem>

namespace trace {

// `runtime`: libassay_carried.so. Throws Failure, one sentence, if the program cannot carry it, or
// `to` cannot be written.
void write_static_program(const std::filesystem::path &program,
                          const std::filesystem::path &runtime, const std::filesystem::path &to);

} // namespace trace
