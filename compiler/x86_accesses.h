// What the processor's own vector and state instructions access: calls of llvm.x86.*, which programs make by the
// functions of immintrin.h.
#pragma once

#include <optional>

#include "compiler/access.h"
#include "llvm/IR/IntrinsicInst.h"

namespace assay::compiler {

// A gather, a scatter, or a load or store under a mask.
std::optional<MaskedAccess> x86_masked(llvm::IntrinsicInst &call);

// Accesses of a fixed number of bytes.
llvm::SmallVector<RangeAccess, 2> x86_ranges(llvm::IntrinsicInst &call);

} // namespace assay::compiler
