// Local variables as objects, of programs that were built to have them (-fassay-objects=stack).
#pragma once

#include <stdint.h>

#include "runtime/core/ids.h"

namespace assay::objects {

void begin_local(const void *start, uint64_t bytes);
// `frame` is that of the hook.
void end_local(const void *start, uint64_t bytes, TypeId type, const void *frame);

} // namespace assay::objects
