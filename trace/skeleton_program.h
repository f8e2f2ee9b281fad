// The skeletons of a trace as a program in C, and what it takes: `assay trace skeleton`.
#pragma once

#include "trace/trace_file.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trace {

struct SkeletonProgram {
  uint64_t functions = 0, files = 0; // that were written
  uint64_t bytes_of_values = 0;
};

// Writes into the folder: a file of C for some functions each, trace/c, a Makefile, and `values`.
// Only functions that were executed. `support` is the folder of trace/c as it is installed. Throws
// Failure where something cannot be written, or has no place in `struct access`.
SkeletonProgram write_skeleton_program(const Trace &trace, const std::filesystem::path &support,
                                       const std::filesystem::path &folder);

} // namespace trace
