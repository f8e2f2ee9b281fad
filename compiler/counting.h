// Code that counts: the arithmetic of abi/shadow.h as IR.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace assay::compiler {

// Adds reads and writes to the counter of the 64-byte block that holds pointer. The halves are
// separate 32-bit additions: mixing widths would defeat store forwarding. Atomic: no update is lost
// to another thread.
void add_to_counter(llvm::IRBuilder<> &builder, llvm::Value *pointer, uint32_t reads,
                    uint32_t writes, bool atomic);

// The runtime's function of abi/hooks.def.
llvm::FunctionCallee hook(llvm::Module &module, llvm::StringRef name);

} // namespace assay::compiler
