// Which pieces of a function must be counted so that it is known how often each of some pieces is executed.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/IR/Function.h"

namespace assay::compiler {

// A call after which the function may not go on.
bool may_not_return(const llvm::Instruction &instruction);

// What lies in a basic block between calls that may not come back: all of it is executed, or nothing.
struct Piece {
  llvm::BasicBlock *block;
  llvm::Instruction *call; // that it follows; null at the block's begin
  uint64_t frequency;      // estimated
  bool is_wanted = false;  // it must be known how often it is executed
  bool is_counted = false;
  uint32_t from = 0, to = 0; // classes, see fields_flow.cc
};

// How often a piece is executed: the sum of others, or their difference.
struct Derivation {
  struct Term {
    uint32_t piece;
    bool is_negative;
  };
  uint32_t piece;
  llvm::SmallVector<Term, 4> terms; // each is counted, or has an earlier derivation
};

// The pieces of a function, in its order: a block's first, then one behind each call in it that may
// not come back and is not its last instruction.
class Flow {
public:
  Flow(llvm::Function &function, llvm::BlockFrequencyInfo &frequencies);

  llvm::MutableArrayRef<Piece> pieces() { return pieces_; }
  // Says which pieces are counted, once it is known which are wanted. Every wanted piece is then counted, or derived.
  void choose();
  // Counts each wanted piece by itself.
  void choose_all();
  llvm::ArrayRef<Derivation> derivations() const { return derivations_; }

private:
  void solve(llvm::ArrayRef<bool> is_in_tree);
  uint64_t cost(llvm::ArrayRef<bool> is_direct, llvm::SmallVectorImpl<bool> &needed) const;

  llvm::SmallVector<Piece, 32> pieces_;
  uint32_t classes_ = 0;
  llvm::SmallVector<Derivation, 16> derivations_;
};

} // namespace assay::compiler
