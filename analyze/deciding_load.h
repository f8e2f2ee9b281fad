// Which load decides a branch.
#pragma once

#include "analyze/values.h"

namespace analyze {

// The loaded values of the instruction that decides the branch: where it is a comparison with a
// constant, of what is in memory or was loaded into a register just before. Null where something
// else decides, or where that is not plain to see.
const ValueList *deciding_load(const ValueFunction &function, size_t branch);

} // namespace analyze
