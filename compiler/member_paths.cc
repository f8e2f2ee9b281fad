// Marks end where an address is stored. Before anything is optimised, each variable is a place on the stack, so that
// what was stored there is found: if it was stored once, and nobody else has the place, it is what is loaded.
//
// A pointer to a struct is not followed: `in->x` with `in = &out->in` is an access to the struct that `in` points to,
// whether the compiler sees where it points or not.

#include "compiler/member_paths.h"

#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr unsigned kMaxSteps = 16;  // from an access to where its address comes from
constexpr unsigned kMaxCalls = 100; // of functions that return what others return

// Of a pointer that is kept in the place: it, so many elements further.
bool is_moved(const Value &value, const AllocaInst &slot) {
  auto *gep = dyn_cast<GetElementPtrInst>(&value);
  auto *load = gep ? dyn_cast<LoadInst>(gep->getPointerOperand()) : nullptr;
  return load && load->getPointerOperand() == &slot;
}

} // namespace

MemberPaths::Kept MemberPaths::what_is_kept(const AllocaInst &slot) {
  auto [known, is_new] = kept_.try_emplace(&slot);
  if (!is_new || !slot.getAllocatedType()->isPointerTy())
    return known->second;
  Kept kept;
  for (const User *user : slot.users()) {
    if (isa<LoadInst>(user) || cast<Instruction>(user)->isLifetimeStartOrEnd())
      continue;
    auto *store = dyn_cast<StoreInst>(user);
    if (!store || store->getPointerOperand() != &slot)
      return {}; // somebody else has its address
    if (is_moved(*store->getValueOperand(), slot))
      kept.moves = true;
    else if (kept.value)
      return {};
    else
      kept.value = store->getValueOperand();
  }
  return known->second = kept;
}

// What the function returns of a member of its argument, on its only way out.
const MemberPaths::Returned &MemberPaths::returned_by(const Function &function) {
  auto [known, is_new] = returned_.try_emplace(&function);
  if (!is_new || function.isDeclaration() || !function.getReturnType()->isPointerTy() ||
      calls_ == kMaxCalls)
    return known->second;
  const ReturnInst *only = nullptr;
  for (const BasicBlock &block : function)
    if (auto *each = dyn_cast<ReturnInst>(block.getTerminator())) {
      if (only)
        return known->second;
      only = each;
    }
  if (!only)
    return known->second;
  calls_++;
  Origin origin = origin_of(only->getReturnValue());
  calls_--;
  auto *argument = dyn_cast<Argument>(origin.value);
  const bool is_of_it = argument && (!origin.moves || !origin.steps.empty());
  return returned_[&function] = is_of_it ? Returned{argument, origin.steps} : Returned();
}

// Adds what is known to lead to the address from further out. False: it is not, or the program
// takes it for another record.
bool MemberPaths::lead_on(Origin &origin, ArrayRef<MemberStep> steps) {
  if (origin.steps.empty() && origin.moves && !is_array(steps.back().member->getBaseType()))
    return false; // beyond the member
  if (!origin.steps.empty() && !leads_on(steps.back(), origin.steps.front()))
    return false;
  origin.steps.insert(origin.steps.begin(), steps.begin(), steps.end());
  origin.moves = false;
  return true;
}

// One step back. False: there is none.
bool MemberPaths::go_back(Origin &origin) {
  const Value *at = origin.value;
  if (const SmallVector<MemberStep, 4> steps = compiler::steps_to(at); !steps.empty()) {
    if (!lead_on(origin, steps))
      return false;
    origin.value = root_of(at);
    return true;
  }
  if (isa<Constant>(at))
    return false; // see in_variable()
  if (auto *gep = dyn_cast<GEPOperator>(at)) {
    const bool moves = !gep->hasAllZeroIndices();
    if (moves && !origin.steps.empty()) // to another object of the member's
      return false;
    origin.moves |= moves;
    origin.value = gep->getPointerOperand();
    return true;
  }
  if (auto *load = dyn_cast<LoadInst>(at)) {
    auto *slot = dyn_cast<AllocaInst>(load->getPointerOperand());
    const Kept kept = slot ? what_is_kept(*slot) : Kept();
    if (!kept.value || (!origin.steps.empty() && (kept.moves || !isa<Argument>(kept.value))))
      return false;
    origin.moves |= kept.moves;
    origin.value = kept.value;
    return true;
  }
  auto *call = dyn_cast<CallBase>(at);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  if (!callee || callee->isIntrinsic() || callee->isInterposable())
    return false;
  const Returned returned = returned_by(*callee);
  if (!returned.from || returned.from->getArgNo() >= call->arg_size() ||
      (!returned.steps.empty() && !lead_on(origin, returned.steps)))
    return false;
  origin.value = call->getArgOperand(returned.from->getArgNo());
  return true;
}

MemberPaths::Origin MemberPaths::origin_of(const Value *pointer) {
  Origin origin = {pointer, {}, false};
  for (unsigned i = 0; i < kMaxSteps && go_back(origin); i++)
    ;
  return origin;
}

std::optional<MemberPaths::InVariable> MemberPaths::in_variable(const Value *pointer,
                                                                const DataLayout &layout) {
  const Origin origin = origin_of(pointer);
  APInt offset(64, 0);
  auto *variable = dyn_cast<GlobalVariable>(
      origin.value->stripAndAccumulateConstantOffsets(layout, offset, true));
  if (!variable || !origin.steps.empty())
    return std::nullopt;
  return InVariable{variable, offset.getZExtValue(), origin.moves};
}

SmallVector<MemberStep, 4> MemberPaths::steps_to(const Value *pointer) {
  if (SmallVector<MemberStep, 4> steps = compiler::steps_to(pointer); !steps.empty())
    return steps;
  SmallVector<MemberStep, 4> steps = origin_of(pointer).steps;
  const bool is_struct =
      !steps.empty() && record_of(element_of(steps.back().member->getBaseType()));
  return is_struct ? SmallVector<MemberStep, 4>() : steps;
}

} // namespace assay::compiler
