// The distance is a variable number that is one of a few constants: chosen by a condition, or by
// the way on which the access is reached. Which one it is, is asked anew before the access, by
// comparing the number. The address stays as it is: so the program computes what it would without
// us, with a branch where it may have had none.
//
// Refused: to keep such accesses apart from the start, as joined_loads.cc does with pointers that a loop takes from
// memory: then no loop over numbers is vectorised.

#include "compiler/chosen_members.h"

#include <optional>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr size_t kMaxChoices = 4;
constexpr unsigned kMaxSteps = 4; // from the number to the constants

using Constants = SmallVector<Constant *, kMaxChoices>;

bool add(Constants &all, Constant *one) {
  if (!one || !isa<ConstantInt>(one))
    return false;
  if (!is_contained(all, one))
    all.push_back(one);
  return all.size() <= kMaxChoices;
}

// What a table of constants holds.
bool all_of_table(const LoadInst &load, Constants &all) {
  auto *element = dyn_cast<GetElementPtrInst>(load.getPointerOperand());
  auto *table = element ? dyn_cast<GlobalVariable>(element->getPointerOperand()) : nullptr;
  auto *numbers = table && table->isConstant() && table->hasDefinitiveInitializer()
                      ? dyn_cast<ConstantDataArray>(table->getInitializer())
                      : nullptr;
  if (!numbers || numbers->getElementType() != load.getType())
    return false;
  for (unsigned i = 0; i < numbers->getNumElements(); i++)
    if (!add(all, numbers->getElementAsConstant(i)))
      return false;
  return true;
}

// All that a number can be; false: that is not known, or too many.
bool find_constants(Value *number, Constants &all, unsigned steps, const DataLayout &layout) {
  if (auto *constant = dyn_cast<Constant>(number))
    return add(all, constant);
  if (steps == 0)
    return false;
  if (auto *select = dyn_cast<SelectInst>(number))
    return find_constants(select->getTrueValue(), all, steps - 1, layout) &&
           find_constants(select->getFalseValue(), all, steps - 1, layout);
  if (auto *phi = dyn_cast<PHINode>(number))
    return all_of(phi->incoming_values(),
                  [&](Value *value) { return find_constants(value, all, steps - 1, layout); });
  if (auto *load =
          dyn_cast<LoadInst>(number)) // of a table that the optimiser has made of a `switch`
    return all_of_table(*load, all);
  Constants of_operand;
  if (auto *cast = dyn_cast<CastInst>(number)) {
    if (cast->getSrcTy()->isIntegerTy(1)) {
      of_operand = {ConstantInt::getFalse(cast->getSrcTy()),
                    ConstantInt::getTrue(cast->getSrcTy())};
    } else if (!find_constants(cast->getOperand(0), of_operand, steps - 1, layout)) {
      return false;
    }
    return all_of(of_operand, [&](Constant *each) {
      return add(all, ConstantFoldCastOperand(cast->getOpcode(), each, cast->getType(), layout));
    });
  }
  auto *computed = dyn_cast<BinaryOperator>(number);
  auto *constant = computed ? dyn_cast<ConstantInt>(computed->getOperand(1)) : nullptr;
  return constant && find_constants(computed->getOperand(0), of_operand, steps - 1, layout) &&
         all_of(of_operand, [&](Constant *each) {
           return add(all,
                      ConstantFoldBinaryOpOperands(computed->getOpcode(), each, constant, layout));
         });
}

// An address that is one of a few: those at some distances behind another one.
struct Choice {
  Value *base = nullptr;
  Value *number = nullptr; // by which it is chosen
  Constants numbers;
  SmallVector<int64_t, kMaxChoices> distances; // in bytes, one for each number
};

std::optional<Choice> choice_at(Value *pointer, const DataLayout &layout) {
  auto *indexed = dyn_cast<GetElementPtrInst>(pointer);
  if (!indexed || indexed->getType()->isVectorTy())
    return std::nullopt;
  SmallMapVector<Value *, APInt, 4> steps;
  const unsigned bits = layout.getIndexTypeSizeInBits(indexed->getType());
  APInt constant(bits, 0);
  if (!cast<GEPOperator>(indexed)->collectOffset(layout, bits, steps, constant) ||
      steps.size() != 1)
    return std::nullopt;
  Choice choice;
  choice.base = indexed->getPointerOperand();
  choice.number = steps.front().first;
  if (!find_constants(choice.number, choice.numbers, kMaxSteps, layout) ||
      choice.numbers.size() < 2)
    return std::nullopt;
  for (const Constant *each : choice.numbers) {
    const APInt number = cast<ConstantInt>(each)->getValue().sextOrTrunc(bits);
    choice.distances.push_back((number * steps.front().second + constant).getSExtValue());
  }
  return choice;
}

// The access again, in front of this instruction.
Instruction *make_one(Instruction &access, MDNode *tag, Instruction *before) {
  Instruction *one = access.clone();
  one->setMetadata(kMember, tag);
  one->insertBefore(before->getIterator());
  return one;
}

void split(Instruction &access, const Choice &choice, ArrayRef<MDNode *> tags) {
  Instruction *at = &access;
  SmallVector<Instruction *, kMaxChoices> made;
  for (size_t i = 0; i + 1 < choice.numbers.size(); i++) {
    IRBuilder<> builder(at);
    builder.SetCurrentDebugLocation(access.getDebugLoc());
    Value *is_this = builder.CreateICmpEQ(choice.number, choice.numbers[i]);
    Instruction *then = nullptr, *otherwise = nullptr;
    SplitBlockAndInsertIfThenElse(is_this, at->getIterator(), &then, &otherwise);
    made.push_back(make_one(access, tags[i], then));
    at = otherwise;
  }
  made.push_back(make_one(access, tags.back(), at));
  if (isa<LoadInst>(access)) {
    // What was read comes together where the ways do, the innermost first.
    Value *value = made.back();
    for (size_t i = made.size() - 1; i-- > 0;) {
      BasicBlock *join = made[i]->getParent()->getSingleSuccessor();
      PHINode *phi = PHINode::Create(access.getType(), 2, "", join->begin());
      phi->setDebugLoc(access.getDebugLoc());
      for (BasicBlock *from : predecessors(join))
        phi->addIncoming(from == made[i]->getParent() ? (Value *)made[i] : value, from);
      value = phi;
    }
    access.replaceAllUsesWith(value);
  }
  access.eraseFromParent();
}

} // namespace

void split_chosen_accesses(Function &function, MemberTags &tags) {
  const DataLayout &layout = function.getDataLayout();
  struct Found {
    Instruction *access;
    Choice choice;
    SmallVector<MDNode *, kMaxChoices> tags;
  };
  SmallVector<Found, 4> found;
  std::optional<DominatorTree> dominators;
  tags.begin(function);
  for (Instruction &instruction : instructions(function)) {
    Value *pointer = getLoadStorePointerOperand(&instruction);
    const MDNode *tag = pointer ? member_tag(instruction) : nullptr;
    if (!pointer || (tag && !is_undescribed(*tag)))
      continue;
    std::optional<Choice> choice = choice_at(pointer, layout);
    if (!choice)
      continue;
    if (!dominators) // most functions need none
      dominators.emplace(function);
    Found one = {&instruction, *choice, {}};
    for (const int64_t distance : choice->distances)
      one.tags.push_back(tags.tag_behind(instruction, choice->base, distance, *dominators));
    if (!is_contained(one.tags, nullptr))
      found.push_back(one);
  }
  for (const Found &each : found)
    split(*each.access, each.choice, each.tags);
}

} // namespace assay::compiler
