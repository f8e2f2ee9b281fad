// Which fields an access is to that the optimiser has made of several: a vector of neighbouring
// fields, of one object or of objects that lie side by side, or a wide load or store.
#pragma once

#include <cstdint>

#include "compiler/record_layout.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Instruction.h"

namespace assay::compiler {

// The type of a load or store of a vector; null for others.
const llvm::FixedVectorType *vector_of(const llvm::Instruction &access);

// The lanes that a load's users take, all of a store; 1 of what is no vector.
uint64_t lanes_used(const llvm::Instruction &access);

// So many accesses of the source to each of these leaves. `from` is where the record begins, in
// bytes behind the address of the access.
struct JoinedMembers {
  LeafRange leaves;
  uint64_t accesses = 1;
  int64_t from = 0;
};

// Of a load or store of so many bytes, whose address is at an offset in the record. Each lane of a
// vector is one access of the source; those that are loaded and not used are none. What reaches
// beyond the record is taken for the next ones of an array.
llvm::SmallVector<JoinedMembers, 2> joined_members(const llvm::Instruction &access,
                                                   const RecordLayout &record, uint64_t offset,
                                                   uint64_t bytes);

} // namespace assay::compiler
