// Where in a basic block accesses meet: places whose accesses share one update, and code after an
// instruction.
#pragma once

#include <tuple>

#include "compiler/access.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/MathExtras.h"

namespace assay::compiler {

// Where an access lies: bytes first to last from base, which is a multiple of align, at most of a block's bytes.
// They are told apart by granules, pieces of `align` bytes: each lies in one block.
struct Place {
  llvm::Value *base;
  uint64_t align;
  int64_t first, last;
  uint64_t reach; // bytes from the granule of the first byte to that of the last

  // Accesses of equal keys reach the same blocks.
  auto key() const {
    return std::make_tuple(base, align, llvm::divideFloorSigned(first, (int64_t)align),
                           llvm::divideFloorSigned(last, (int64_t)align));
  }
};

// The place of the access, with the largest alignment that follows from the access and from what is known
// of the base. Its reach takes the access's own alignment where that is larger.
Place place_of(const Access &access, const llvm::DataLayout &layout, uint64_t block_bytes);

// Builds after an instruction, or before it, in its name. Where nothing can stand behind it, before it.
class BuilderAfter : public llvm::IRBuilder<> {
public:
  explicit BuilderAfter(llvm::Instruction &instruction, bool before = false);
};

} // namespace assay::compiler
