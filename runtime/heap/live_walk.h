// CheckPlacement at every live object without stopping the program.
#pragma once

#include <stdint.h>

#include "runtime/core/chunk.h"

namespace assay::heap {

// Calls f(block, header) for every live object: chunks, objects beside, of pools and of mmap, one at a time, from the caller's thread. Chunks may
// be freed, and their memory unmapped, meanwhile: headers are copies, read through the kernel and
// checked.
void for_each_live(void (*f)(const void *block, const ChunkHeader &header));

} // namespace assay::heap
