// Where in the source an access is written, though it be inlined elsewhere.
#pragma once

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"

namespace assay::compiler {

// The function that the source has it in, by linkage name, and its line there; 0: unknown.
struct SourcePlace {
  llvm::StringRef function;
  uint32_t line = 0;
};

// Of accesses that are counted together: in the function that they all belong to, with the line of
// the first that has one.
class CommonPlace {
public:
  void add(const llvm::Instruction &access);
  SourcePlace in(const llvm::Function &function) const;

private:
  const llvm::DILocation *location_ = nullptr;
};

} // namespace assay::compiler
