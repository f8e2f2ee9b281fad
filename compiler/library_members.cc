// Refused: accesses by address, as `objects` counts them, because fields have counters that are
// known when the program is built; and marks that survive the optimiser's inlining, because then
// counts would depend on what it inlines.

#include "compiler/library_members.h"

#include <optional>

#include "compiler/clang_marks.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/ValueTracking.h"
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

// Instructions: an atomic operation at -O0, with its six orders of memory, has 80; one that compares
// has each pair of orders, and 250. What is larger does more than to reach a member.
constexpr unsigned kMaxCallee = 120, kMaxExchange = 320, kMaxAdded = 20'000;
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
    open_all(std::move(calls), leads_to_member_);
    if (!added_)
      return;
    removeUnreachableBlocks(function_); // behind what only throws
    SmallVector<AllocaInst *> holders;
    for (Instruction &instruction : instructions(function_))
      if (auto *slot = dyn_cast<AllocaInst>(&instruction); slot && holds_member(*slot))
        holders.push_back(slot);
    for (AllocaInst *holder : holders)
      open_holder(*holder);
    if (!holders.empty())
      removeUnreachableBlocks(function_);
  }

private:
  // The calls that get such an address, and those that they make with it.
  void open_all(SmallVector<CallBase *> calls, function_ref<bool(const Value &)> is_reached) {
    for (unsigned depth = 0; depth < kMaxDepth && !calls.empty(); depth++) {
      SmallVector<CallBase *> inner;
      for (CallBase *call : calls)
        if (can_open(*call) && any_of(call->args(), [&](const Value *argument) {
              return argument->getType()->isPointerTy() && is_reached(*argument);
            }))
          open(*call, inner);
      calls = std::move(inner);
    }
  }

  bool can_open(const CallBase &call) const {
    const Function *callee = call.getCalledFunction();
    return callee && may_open(*callee) && call.getDebugLoc() && !call.isMustTailCall();
  }

  struct HolderUses {
    StoreInst *kept = nullptr;
    SmallVector<LoadInst *> loads;
    SmallSetVector<CallBase *, 4> calls;
  };

  // Of an object of the library that holds nothing but the address of a member (std::atomic_ref). None: it may hold
  // another one, or be known elsewhere.
  std::optional<HolderUses> uses_of_holder(AllocaInst &holder) const {
    auto *type = dyn_cast<StructType>(holder.getAllocatedType());
    if (!type || function_.getDataLayout().getTypeAllocSize(type) !=
                     function_.getDataLayout().getPointerSize())
      return std::nullopt;
    HolderUses uses;
    SmallVector<Instruction *> addresses = {&holder};
    while (!addresses.empty()) {
      Instruction *address = addresses.pop_back_val();
      for (User *user : address->users()) {
        if (auto *load = dyn_cast<LoadInst>(user); load && load->getType()->isPointerTy())
          uses.loads.push_back(load);
        else if (auto *store = dyn_cast<StoreInst>(user);
                 store && !uses.kept && store->getPointerOperand() == address &&
                 leads_to_member_(*store->getValueOperand()))
          uses.kept = store;
        else if (is_mark(user) || isa<GetElementPtrInst>(user))
          addresses.push_back(cast<Instruction>(user));
        else if (auto *call = dyn_cast<CallBase>(user); call && can_open(*call))
          uses.calls.insert(call);
        else if (!isa<LifetimeIntrinsic>(user) && !is_left_of_parameter(*user, *address))
          return std::nullopt;
      }
    }
    return uses.kept ? std::optional(std::move(uses)) : std::nullopt;
  }

  // It was put where forward_parameter() has left no load.
  static bool is_left_of_parameter(const User &user, const Value &argument) {
    auto *store = dyn_cast<StoreInst>(&user);
    const Value *slot =
        store && store->getValueOperand() == &argument ? store->getPointerOperand() : nullptr;
    return slot && isa<AllocaInst>(slot) && all_of(slot->users(), [](const User *each) {
             return isa<StoreInst>(each) || isa<LifetimeIntrinsic>(each);
           });
  }

  bool holds_member(AllocaInst &slot) const { return uses_of_holder(slot).has_value(); }

  // What its functions get of it is the address that it was made of.
  void open_holder(AllocaInst &holder) {
    if (std::optional<HolderUses> uses = uses_of_holder(holder))
      open_all(uses->calls.takeVector(),
               [&](const Value &argument) { return object_at(&argument) == &holder; });
    std::optional<HolderUses> uses = uses_of_holder(holder);
    if (!uses || !uses->calls.empty())
      return;
    const DominatorTree dominators(function_);
    SmallSetVector<CallBase *, 4> calls;
    for (LoadInst *load : uses->loads)
      if (dominators.dominates(uses->kept, load)) {
        for (User *user : load->users())
          if (auto *call = dyn_cast<CallBase>(user))
            calls.insert(call);
        load->replaceAllUsesWith(uses->kept->getValueOperand());
        load->eraseFromParent();
      }
    open_all(calls.takeVector(), leads_to_member_);
  }

  static const Value *object_at(const Value *address) {
    while (is_mark(address))
      address = cast<CallBase>(address)->getArgOperand(0);
    return getUnderlyingObject(address);
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
           callee.getInstructionCount() <= (has_exchange(callee) ? kMaxExchange : kMaxCallee) &&
           isInlineViable(const_cast<Function &>(callee)).isSuccess();
  }

  static bool has_exchange(const Function &callee) {
    return any_of(instructions(callee), IsaPred<AtomicCmpXchgInst>);
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

  // Clang stores each parameter in memory first, and loads it from there: what the loads get is the argument. Of the
  // code for orders of memory, which calls mostly name, one is left.
  static void forward_parameter(AllocaInst &slot, ArrayRef<Value *> arguments) {
    StoreInst *stored = only_store(slot);
    if (!stored || !is_contained(arguments, stored->getValueOperand()))
      return;
    for (User *user : make_early_inc_range(slot.users()))
      if (auto *load = dyn_cast<LoadInst>(user);
          load && load->getType() == stored->getValueOperand()->getType()) {
        SmallPtrSet<BasicBlock *, 2> chosen;
        for (User *chooses : load->users())
          if (auto *choice = dyn_cast<SwitchInst>(chooses);
              choice && isa<ConstantInt>(stored->getValueOperand()))
            chosen.insert(choice->getParent());
        load->replaceAllUsesWith(stored->getValueOperand());
        load->eraseFromParent();
        for (BasicBlock *block : chosen)
          ConstantFoldTerminator(block);
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
