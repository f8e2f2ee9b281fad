// Where functions begin and end, by the unwind tables (.eh_frame), which stripped files keep.
#pragma once

#include "image/elf_tables.h"

#include <cstdint>
#include <vector>

namespace image {

struct UnwindRange {            // one frame description entry
  uint64_t begin = 0, end = 0;  // end exclusive; begin < end
  uint64_t exception_table = 0; // address of the language-specific data; 0 if there is none
};

// In the order of the file, as it says: entries may overlap, or lie where no code is. Of damaged
// tables what can be read.
std::vector<UnwindRange> unwind_ranges(const ElfTables &tables);

} // namespace image
