// Accesses that no few instructions can follow: the instrumented code calls the runtime for them.
#pragma once

#include "compiler/access.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace assay::compiler {

struct CalledAccesses {
  llvm::SmallVector<std::pair<llvm::Instruction *, RangeAccess>, 8> ranges;
  llvm::SmallVector<std::pair<llvm::Instruction *, VectorAccess>, 2> vectors;
  llvm::SmallVector<std::pair<llvm::Instruction *, StringAccess>, 4> strings;
  llvm::SmallVector<std::pair<llvm::Instruction *, MaskedAccess>, 4> masked;

  // Adds those that the instruction makes. Returns how many.
  uint32_t collect(llvm::Instruction &instruction, const llvm::TargetLibraryInfo &library,
                   Interest interest);
  size_t size() const { return ranges.size() + vectors.size() + strings.size() + masked.size(); }
  bool empty() const { return size() == 0; }
};

// The bytes of a range, as 64 bits.
llvm::Value *bytes_of(llvm::IRBuilder<> &builder, const RangeAccess &range);
// A vector's buffers, how many they are, and the bytes of all, as the runtime's hooks take them.
llvm::SmallVector<llvm::Value *, 4> parts_of(llvm::IRBuilder<> &builder,
                                             const VectorAccess &access);
// A length as 64 bits; all ones where there is none.
llvm::Value *bytes_or_all(llvm::IRBuilder<> &builder, llvm::Value *length);

// How many lanes the mask chooses, as 64 bits; a constant where the mask is one.
llvm::Value *active_lanes(llvm::IRBuilder<> &builder, const MaskedAccess &access);

// The calls that a masked access needs: `call` is given the place of the first lane and a 64-bit mask of
// the active ones, 64 lanes at a time; each lane by itself where every one has a pointer of its own.
void for_each_call(llvm::IRBuilder<> &builder, const MaskedAccess &access,
                   llvm::function_ref<void(llvm::Value *pointer, llvm::Value *bits)> call);

} // namespace assay::compiler
