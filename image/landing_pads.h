// Where C++ exceptions are caught or pass through a destructor.
#pragma once

#include "image/elf_tables.h"
#include "image/unwind_ranges.h"

#include <cstdint>
#include <vector>

namespace image {

// Calls in [call_begin, call_end) may continue at `pad` when they throw.
struct LandingPad {
  uint64_t call_begin = 0, call_end = 0, pad = 0;
};

// By call_begin, unique. All of them lie in executable segments. Of damaged tables what can be read.
std::vector<LandingPad> landing_pads(const ElfTables &tables,
                                     const std::vector<UnwindRange> &frames);

} // namespace image
