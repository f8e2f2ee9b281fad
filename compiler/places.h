// Where in a basic block accesses meet: places whose accesses share one update, and code after an
// instruction.
#pragma once

#include "compiler/access.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"

namespace assay::compiler {

// A place whose accesses share an update: granule number `granule` of `align` bytes from base.
struct Place {
  llvm::Value *base;
  uint64_t align;
  int64_t granule;
  bool operator==(const Place &other) const {
    return base == other.base && align == other.align && granule == other.granule;
  }
};

// Where the access lies: the largest alignment of the base that follows from the access and from what is
// known of the base, up to that of a block, and the granule in it.
Place place_of(const Access &access, const llvm::DataLayout &layout, uint64_t block_bytes);

// Builds after an instruction, in its name.
class BuilderAfter : public llvm::IRBuilder<> {
public:
  explicit BuilderAfter(llvm::Instruction &instruction);
};

} // namespace assay::compiler
