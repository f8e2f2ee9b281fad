// Functions that no table of a file names.
#pragma once

#include "image/executable.h"

#include <cstdint>
#include <vector>

namespace binary {

// The functions of the file, and those that are found in the code between them, by begin.
std::vector<image::CodeRange> discovered_functions(const image::Executable &executable);

// Of all bytes in executable sections: how many belong to a known function, and how many pad between
// them. The rest is data among code, or code that nothing leads to.
struct Coverage {
  uint64_t code = 0, in_functions = 0, padding = 0;
};
Coverage coverage_of(const image::Executable &executable);

} // namespace binary
