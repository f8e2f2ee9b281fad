// Refused: accesses by address, as `objects` counts them, because fields have counters that are
// known when the program is built; and marks that survive the optimiser's inlining, because then
// counts would depend on what it inlines.

#include "compiler/library_members.h"

#include <optional>

#include "llvm/Analysis/InlineCost.h"
#include "llvm/IR/Attributes.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace assay::compiler {
namespace {

// Instructions: an atomic operation at -O0, with its six orders of memory, has 80. What is larger
// does more than to reach a member.
constexpr unsigned kMaxCallee = 120, kMaxAdded = 20'000;
constexpr unsigned kMaxDepth = 16; // of calls from library code to library code

class Opener {
public:
  Opener(Function &function, function_ref<bool(const Value &)> leads_to_member)
      : function_(function), leads_to_member_(leads_to_member) {}

  void run() {
    SmallVector<CallBase *> calls;
    for (Instruction &instruction : instructions(function_))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        calls.push_back(call);
    pass_members(calls);
    for (unsigned depth = 0; depth < kMaxDepth && !calls.empty(); depth++) {
      SmallVector<CallBase *> inner;
      for (CallBase *call : calls)
        if (reaches_member(*call))
          open(*call, inner);
      calls = std::move(inner);
    }
    if (added_)
      removeUnreachableBlocks(function_); // behind what only throws
  }

private:
  bool reaches_member(const CallBase &call) const {
    const Function *callee = call.getCalledFunction();
    return callee && may_open(*callee) && call.getDebugLoc() && !call.isMustTailCall() &&
           any_of(call.args(), [&](const Value *argument) {
             return argument->getType()->isPointerTy() && leads_to_member_(*argument);
           });
  }

  // `for (int each : order.list)` keeps a reference to the member, as programs do themselves: what is passed on
  // is the address that the reference was made of.
  void pass_members(ArrayRef<CallBase *> calls) {
    std::optional<DominatorTree> dominators;
    for (CallBase *call : calls) {
      const Function *callee = call->getCalledFunction();
      if (!callee || !may_open(*callee))
        continue;
      for (Use &argument : call->args())
        if (Value *address = kept_in(argument.get(), dominators);
            address && leads_to_member_(*address))
          argument.set(address);
    }
  }

  // What a reference was made of, of references as well; null: it is none.
  Value *kept_in(Value *reference, std::optional<DominatorTree> &dominators) {
    Value *address = nullptr;
    for (auto *load = dyn_cast<LoadInst>(reference); load; load = dyn_cast<LoadInst>(address)) {
      auto *variable = dyn_cast<AllocaInst>(load->getPointerOperand());
      StoreInst *kept = variable ? only_store(*variable) : nullptr;
      if (!kept || kept->getValueOperand()->getType() != load->getType())
        break;
      if (!dominators)
        dominators.emplace(function_);
      if (!dominators->dominates(kept, load))
        break;
      address = kept->getValueOperand();
    }
    return address;
  }

  // To a variable that has one value and no address; null: it may have others.
  static StoreInst *only_store(AllocaInst &variable) {
    StoreInst *only = nullptr;
    for (User *user : variable.users()) {
      if (auto *load = dyn_cast<LoadInst>(user); load && !load->isVolatile())
        continue;
      if (isa<LifetimeIntrinsic>(user))
        continue;
      auto *store = dyn_cast<StoreInst>(user);
      if (!store || only || store->isVolatile() || store->getPointerOperand() != &variable)
        return nullptr;
      only = store;
    }
    return only;
  }

  bool may_open(const Function &callee) const {
    return !callee.isDeclaration() && !callee.isInterposable() && &callee != &function_ &&
           callee.getSubprogram() && is_of_library(callee.getSubprogram()) &&
           !callee.isPresplitCoroutine() &&
           callee.getFnAttribute("target-features") ==
               function_.getFnAttribute("target-features") &&
           AttributeFuncs::areInlineCompatible(function_, callee) &&
           callee.getInstructionCount() <= kMaxCallee &&
           isInlineViable(const_cast<Function &>(callee)).isSuccess();
  }

  void open(CallBase &call, SmallVectorImpl<CallBase *> &inner) {
    const Function &callee = *call.getCalledFunction();
    if (added_ + callee.getInstructionCount() > kMaxAdded)
      return;
    added_ += callee.getInstructionCount();
    const SmallVector<Value *> arguments(call.args());
    InlineFunctionInfo opened;
    const bool merge_attributes = true,
               mark_lifetimes = false; // clang has marked those that forward_parameter() leaves
    if (!InlineFunction(call, opened, merge_attributes, nullptr, mark_lifetimes).isSuccess())
      return;
    for (AllocaInst *slot : opened.StaticAllocas)
      forward_parameter(*slot, arguments);
    append_range(inner, opened.InlinedCallSites);
  }

  // Clang stores each parameter in memory first, and loads it from there: what the loads get is the argument.
  static void forward_parameter(AllocaInst &slot, ArrayRef<Value *> arguments) {
    StoreInst *stored = only_store(slot);
    if (!stored || !is_contained(arguments, stored->getValueOperand()))
      return;
    for (User *user : make_early_inc_range(slot.users()))
      if (auto *load = dyn_cast<LoadInst>(user);
          load && load->getType() == stored->getValueOperand()->getType()) {
        load->replaceAllUsesWith(stored->getValueOperand());
        load->eraseFromParent();
      }
  }

  Function &function_;
  function_ref<bool(const Value &)> leads_to_member_;
  uint64_t added_ = 0; // instructions
};

} // namespace

bool is_of_library(const DIScope *scope) {
  for (; scope; scope = scope->getScope())
    if (auto *space = dyn_cast<DINamespace>(scope);
        space && (space->getName() == "std" || space->getName() == "__gnu_cxx"))
      return true;
  return false;
}

void open_library_calls(Module &module, function_ref<bool(const Value &)> leads_to_member) {
  for (Function &function : module)
    if (!function.isDeclaration() && function.getSubprogram() && !function.isPresplitCoroutine())
      Opener(function, leads_to_member).run();
}

} // namespace assay::compiler
