// Tags the accesses to members of records, before anything is optimised.
#pragma once

#include "llvm/IR/Module.h"

namespace assay::compiler {

// Tags them (member_tag_nodes.h), and turns clang's marks into ordinary address computations.
void tag_members(llvm::Module &module);

} // namespace assay::compiler
