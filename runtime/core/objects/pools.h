// The objects of pools that the program describes by assay/annotate.h.
#pragma once

#include "runtime/core/objects/chunk.h"

namespace assay {

// Calls f for every live object of every pool; others may come and go meanwhile.
void for_each_pool_object(void (*f)(const void *block, const ChunkHeader &header));

} // namespace assay
