// One of the loads is made unordered until the pipeline's end: it is not merged with ordinary ones then, and its
// code is the same on this processor. clang itself makes no such loads of C and C++.
//
// The optimiser does less with it: it takes no value for it from another load or store, and
// vectorises no loop that has one. So it is done to as few as can be: to pointers, where a loop
// takes its next one from memory, which no loop can be vectorised over; and if possible to the load
// before the loop.
//
// Refused: calls behind the loads that keep these where they are (llvm.sideeffect): then a function
// that only reads does not count as such, and what calls it is optimised otherwise than without us.

#include "compiler/joined_loads.h"

#include "compiler/member_tags.h"

#include <optional>

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace assay::compiler {
namespace {

// That of a phi may become one with others.
LoadInst *joined_load(Value *value, const PHINode &phi) {
  auto *load = dyn_cast<LoadInst>(value);
  const bool is_joined = load && load->isSimple() && load->hasOneUse() &&
                         load->user_back() == &phi && member_tag(*load) &&
                         load->getAlign() >= load->getDataLayout().getPointerSize();
  return is_joined ? load : nullptr;
}

// The load that is to differ from the others; null: none needs to.
LoadInst *load_to_mark(PHINode &phi, const DominatorTree &dominators) {
  LoadInst *before = nullptr, *within = nullptr;
  bool is_loop = false, differs = false;
  const MDNode *tag = nullptr;
  for (unsigned i = 0; i < phi.getNumIncomingValues(); i++) {
    const bool is_latch = dominators.dominates(phi.getParent(), phi.getIncomingBlock(i));
    is_loop |= is_latch;
    if (LoadInst *load = joined_load(phi.getIncomingValue(i), phi)) {
      differs |= (before || within) && member_tag(*load) != tag;
      tag = member_tag(*load);
      (is_latch ? within : before) = load;
    } else {
      differs |= isa<CallBase>(phi.getIncomingValue(i)); // may be a load when it is inlined
    }
  }
  return is_loop && differs ? (before ? before : within) : nullptr;
}

} // namespace

void keep_joined_loads_apart(Module &module) {
  for (Function &function : module) {
    std::optional<DominatorTree> dominators; // most functions need none
    for (BasicBlock &block : function)
      for (PHINode &phi : block.phis()) {
        if (!phi.getType()->isPointerTy() ||
            none_of(phi.incoming_values(), [&](Value *value) { return joined_load(value, phi); }))
          continue;
        if (!dominators)
          dominators.emplace(function);
        if (LoadInst *load = load_to_mark(phi, *dominators))
          load->setOrdering(AtomicOrdering::Unordered);
      }
  }
}

void release_joined_loads(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto *load = dyn_cast<LoadInst>(&instruction);
          load && load->getOrdering() == AtomicOrdering::Unordered)
        load->setOrdering(AtomicOrdering::NotAtomic);
}

} // namespace assay::compiler
