// How the heap's records of a long run become few.
#pragma once

#include "runtime/core/file/compaction.h"

namespace assay::heap {

extern const Compactor compactor;

} // namespace assay::heap
