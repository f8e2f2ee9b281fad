// A load that is unordered is not merged with another, and is nearly nothing else: its code is the same
// on this processor, and it is moved, speculated and removed as others are. clang itself makes none
// of C and C++.
//
// Refused: calls behind the loads that keep these where they are (llvm.sideeffect): then a function
// that only reads does not count as such, and what calls it is optimised otherwise than without us.

#include "compiler/joined_loads.h"

#include "compiler/member_tags.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace assay::compiler {
namespace {

// That of a phi may become one with others.
LoadInst *joined_load(Value *value, const PHINode &phi) {
  auto *load = dyn_cast<LoadInst>(value);
  return load && load->hasOneUse() && load->user_back() == &phi && member_tag(*load) ? load
                                                                                     : nullptr;
}

// Whether it may be a load of another member, or of none: a call may become one when it is inlined.
bool is_of_another(const Value *value, const MDNode *tag) {
  if (auto *load = dyn_cast<LoadInst>(value))
    return member_tag(*load) != tag;
  return isa<CallBase>(value);
}

bool may_be_unordered(const LoadInst &load) {
  Type *type = load.getType();
  const bool is_scalar = type->isIntegerTy() || type->isPointerTy() || type->isFloatingPointTy();
  const uint64_t bits = load.getDataLayout().getTypeSizeInBits(type).getKnownMinValue();
  return load.isSimple() && is_scalar && isPowerOf2_64(bits) && bits >= 8 && bits <= 64 &&
         load.getAlign() >= bits / 8;
}

} // namespace

void keep_joined_loads_apart(Module &module) {
  for (Function &function : module)
    for (BasicBlock &block : function)
      for (PHINode &phi : block.phis())
        for (Value *value : phi.incoming_values())
          if (LoadInst *load = joined_load(value, phi);
              load && may_be_unordered(*load) && any_of(phi.incoming_values(), [&](Value *other) {
                return is_of_another(other, member_tag(*load));
              }))
            load->setOrdering(AtomicOrdering::Unordered);
}

void release_joined_loads(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto *load = dyn_cast<LoadInst>(&instruction);
          load && load->getOrdering() == AtomicOrdering::Unordered)
        load->setOrdering(AtomicOrdering::NotAtomic);
}

} // namespace assay::compiler
