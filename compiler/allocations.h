// The calls that allocate and free, for every tool that asks whose memory is whose.
#pragma once

#include "compiler/sites.h"
#include "llvm/IR/Function.h"

namespace assay::compiler {

// Hands the types of the function's allocations (tags.h) to the runtime, and keeps the function that
// allocates or frees in the call stack. Returns whether anything changed.
bool instrument_allocations(llvm::Function &function, Sites &sites);

} // namespace assay::compiler
