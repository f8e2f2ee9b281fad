// Frames of functions that are not optimised.
#pragma once

#include "llvm/IR/Function.h"

namespace assay::compiler {

// Behind all tools. In a function that is not optimised (-O0), each value that is used in another
// block than its own would take 8 bytes of the frame for itself, and checks split blocks:
// afterwards, such values that are not needed at the same time share their place. So recursion that
// fits natively into its stack does with tools, too, up to the few values that are needed at one
// time.
void share_frame_slots(llvm::Function &function);

} // namespace assay::compiler
