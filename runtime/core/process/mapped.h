// Anonymous mmaps as objects, with the option mmap=1.
#pragma once

#include "runtime/core/objects/chunk.h"

namespace assay {

// Calls f for every live one.
void for_each_mapped(void (*f)(const void *block, const ChunkHeader &header));

} // namespace assay
