// The members that an address leads to, also where the program keeps the address for a while.
#pragma once

#include <optional>

#include "compiler/clang_marks.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Instructions.h"

namespace assay::compiler {

// Of a module as clang has made it. What it finds is kept: nothing may change meanwhile.
class MemberPaths {
public:
  // As clang's marks say it (clang_marks.h). Where they say nothing, the address may have been kept: in a reference, in
  // a pointer that is set once (`int *p = &s->n`) or steps over the elements of a member (`for (int &v : s->list)`), or
  // a function of the module returns the address of a member of what it is given (`int &count()`, `std::get`).
  llvm::SmallVector<MemberStep, 4> steps_to(const llvm::Value *pointer);
  // What a pointer that is set once was set to; null: it is none.
  const llvm::Value *kept_in(const llvm::AllocaInst &slot) { return what_is_kept(slot).value; }
  // An address in a global variable that is kept: a constant, in which clang marks no member (`int &r = global.n`).
  struct InVariable {
    const llvm::GlobalVariable *variable;
    uint64_t offset; // in bytes
    bool moves;      // it steps on from there, over elements
  };
  std::optional<InVariable> in_variable(const llvm::Value *pointer, const llvm::DataLayout &layout);

private:
  struct Kept {
    const llvm::Value *value = nullptr;
    bool moves = false; // from element to element
  };
  // From an argument of a function to what it returns.
  struct Returned {
    const llvm::Argument *from = nullptr; // null: this is not known
    llvm::SmallVector<MemberStep, 4> steps;
  };
  // Where an address comes from, behind all that is known of it.
  struct Origin {
    const llvm::Value *value;
    llvm::SmallVector<MemberStep, 4> steps;
    bool moves = false; // it is not the address of the last member, but of an element
  };

  Origin origin_of(const llvm::Value *pointer);
  bool go_back(Origin &origin);
  static bool lead_on(Origin &origin, llvm::ArrayRef<MemberStep> steps);
  Kept what_is_kept(const llvm::AllocaInst &slot);
  const Returned &returned_by(const llvm::Function &function);

  llvm::DenseMap<const llvm::AllocaInst *, Kept> kept_;
  llvm::DenseMap<const llvm::Function *, Returned> returned_;
  unsigned calls_ = 0; // that returned_by() is within
};

} // namespace assay::compiler
