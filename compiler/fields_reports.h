// Where the code asks whether stretches are to be reported, and which ones are reported there.
#pragma once

#include "compiler/fields_stretches.h"

namespace assay::compiler {

// Behind a stretch, those to report there: itself, and others that are always executed with it.
// Each stretch is reported once wherever it is executed, or not at all where its object was, in the
// same loop, just before.
struct ReportPlace {
  size_t stretch;
  llvm::SmallVector<size_t, 4> reported; // in the order of the function
};

// In the order of the function.
std::vector<ReportPlace> report_places(llvm::ArrayRef<Stretch> stretches,
                                       const llvm::LoopInfo &loops,
                                       const llvm::DominatorTree &dominators);

} // namespace assay::compiler
