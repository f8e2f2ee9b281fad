// Visits every live object without stopping the program.
#pragma once

#include <stdint.h>

#include "runtime/core/objects/chunk.h"

namespace assay {

// Calls f(block, header) for every live object: chunks, objects beside, of pools and of mmap, one at a time, from the
// caller's thread. Chunks may be freed, and their memory unmapped, meanwhile.
//
// Where `is_of_interest` says no to a window of the program's bytes, chunks that lie within it are left out, unless one
// of them is watched (ChunkMap).
void for_each_live(void (*f)(const void *block, const ChunkHeader &header),
                   bool (*is_of_interest)(uint64_t begin, uint64_t end) = nullptr);

} // namespace assay
