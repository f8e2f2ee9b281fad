// How the records of objects of a long run become few.
#pragma once

#include "runtime/core/file/compaction.h"

namespace assay::objects {

extern const Compactor compactor;

} // namespace assay::objects
