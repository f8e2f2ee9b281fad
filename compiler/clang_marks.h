// What clang says of how addresses are computed, in calls that it puts in their place
// (llvm.preserve.struct.access.index and its kin, which member_marks.cc asks for): the member of which record.
#pragma once

#include "compiler/record_layout.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"

namespace assay::compiler {

bool is_mark(const llvm::Value *value);

// A step from a record to a member, as a mark says it.
struct MemberStep {
  const llvm::DIType *type; // of the record; perhaps a typedef
  const llvm::DIDerivedType *member;
};

// The members that lead to an address, from the outermost record of which the source says so.
llvm::SmallVector<MemberStep, 4> steps_to(const llvm::Value *pointer);

// Whether the member of one step has, or is of a class that is derived from, the record of the next.
bool leads_on(const MemberStep &step, const MemberStep &next);

// What the outermost mark that leads to the address is computed from.
const llvm::Value *root_of(const llvm::Value *pointer);

// Whether a member of a record leads to an address, and debug information does not say which
// members the record has: those of C++ modules are described elsewhere.
bool leads_to_undescribed(const llvm::Value *pointer);

// Turns the marks into ordinary address computations.
void remove_marks(llvm::Module &module);

} // namespace assay::compiler
