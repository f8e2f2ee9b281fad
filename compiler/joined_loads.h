// Loads of different members whose values come together are not to become one.
#pragma once

#include "llvm/IR/Module.h"

namespace assay::compiler {

// Behind the first simplification. In a list's walk, `x = list->first` and then `x = x->next` would
// become one load, of a pointer to either member, of which nothing says how often it is which.
void keep_joined_loads_apart(llvm::Module &module);
// At the end of the pipeline.
void release_joined_loads(llvm::Module &module);

} // namespace assay::compiler
