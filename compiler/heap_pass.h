// The heap tool's instrumentation.
#pragma once

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Function.h"

namespace assay::compiler {

struct HeapOptions {
  bool naive = false;    // one update an access, as written: the oracle for every optimisation
  bool exact = false;    // atomic updates: none is lost where threads share a block
  uint32_t counters = 0; // a sum of enum AssayCounters
};

// With ASSAY_COUNTERS_GLOBALS: gives each global variable of the module blocks of its own.
void align_globals(llvm::Module &module);

// Counts the interesting accesses of the function. Returns whether anything changed.
bool instrument_heap(llvm::Function &function, const HeapOptions &options,
                     const llvm::TargetLibraryInfo &library);

} // namespace assay::compiler
