// What every instrumented module carries besides its instrumentation.
#pragma once

#include "llvm/IR/Module.h"

namespace assay::compiler {

// One of a name in each linked module.
void link_once(llvm::Module &module, llvm::GlobalObject &global);

// The reference that fails to link with another version's runtime, the initializer that hands the
// SITES section to the runtime, and, if dir is given, the default place of profiles.
void add_module_init(llvm::Module &module, llvm::StringRef dir);

} // namespace assay::compiler
