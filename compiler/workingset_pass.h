// The working set tool's instrumentation.
#pragma once

#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Function.h"

namespace assay::compiler {

struct WorkingSetOptions {
  bool naive = false; // one check an access, as written: the oracle for every optimisation
  uint32_t lines = 0; // a sum of enum AssayLines
};

// Marks the line of every access of the function, the stack's and globals' too. Returns whether
// anything changed.
bool instrument_workingset(llvm::Function &function, const WorkingSetOptions &options,
                           const llvm::TargetLibraryInfo &library,
                           llvm::ScalarEvolution &evolution);

} // namespace assay::compiler
