// Local variables as objects (-fassay-objects=stack).
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"

namespace assay::compiler::objects {

// Of one function: variables of array and struct type that are in memory.
class LocalVariables {
public:
  explicit LocalVariables(llvm::Function &function) : function_(function) {}
  void find();
  // Calls the runtime where they begin and where they end.
  void insert();

private:
  llvm::Function &function_;
  llvm::SmallVector<llvm::AllocaInst *, 8> variables_;
};

} // namespace assay::compiler::objects
