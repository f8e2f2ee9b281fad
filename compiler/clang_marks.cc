// A mark's first operand is the address that the next one is computed from; its last one, of records, is the
// number of the member in debug information.

#include "compiler/clang_marks.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace assay::compiler {
namespace {

// Clang initializes an array in a loop from this element to the last; null: it is no such loop.
const Value *first_element(const PHINode &each) {
  if (each.getNumIncomingValues() != 2)
    return nullptr;
  for (unsigned next = 0; next < 2; next++)
    if (auto *gep = dyn_cast<GetElementPtrInst>(each.getIncomingValue(next));
        gep && gep->getPointerOperand() == &each && each.getIncomingValue(1 - next) != gep)
      return each.getIncomingValue(1 - next);
  return nullptr;
}

// Where an address was computed from, by a mark or not; null: that is not said.
const Value *computed_from(const Value *pointer) {
  if (is_mark(pointer))
    return cast<CallBase>(pointer)->getArgOperand(0);
  if (auto *phi = dyn_cast<PHINode>(pointer))
    return first_element(*phi);
  auto *gep = dyn_cast<GEPOperator>(pointer);
  return gep ? gep->getPointerOperand() : nullptr;
}

// Perhaps a typedef.
const DIType *type_in(const IntrinsicInst &mark) {
  return dyn_cast_or_null<DIType>(mark.getMetadata(LLVMContext::MD_preserve_access_index));
}

std::optional<MemberStep> step_of(const Value *value) {
  if (!is_mark(value))
    return std::nullopt;
  auto *call = cast<IntrinsicInst>(value);
  if (call->getIntrinsicID() == Intrinsic::preserve_array_access_index)
    return std::nullopt;
  const DIType *type = type_in(*call);
  const DICompositeType *record = record_of(type);
  if (!record)
    return std::nullopt;
  auto number = cast<ConstantInt>(call->getArgOperand(call->arg_size() - 1))->getZExtValue();
  const DIDerivedType *member = member_of(*record, (unsigned)number);
  return member ? std::optional(MemberStep{type, member}) : std::nullopt;
}

bool is_or_has_base(const DICompositeType *record, const DICompositeType *base) {
  if (!record || record == base)
    return record != nullptr;
  for (const DINode *node : record->getElements())
    if (auto *member = dyn_cast_or_null<DIDerivedType>(node);
        member && member->getTag() == dwarf::DW_TAG_inheritance &&
        is_or_has_base(record_of(member->getBaseType()), base))
      return true;
  return false;
}

// The offset of the member, in bytes, as debug information has it. None for bit-fields, whose
// storage unit clang has chosen.
std::optional<uint64_t> member_offset(const CallBase &mark) {
  std::optional<MemberStep> step = step_of(&mark);
  if (!step || step->member->isBitField())
    return std::nullopt;
  return step->member->getOffsetInBits() / 8;
}

Value *address_of(IntrinsicInst &mark) {
  IRBuilder<> builder(&mark);
  Value *base = mark.getArgOperand(0);
  Type *element = mark.getParamElementType(0);
  auto operand = [&](unsigned i) {
    return (unsigned)cast<ConstantInt>(mark.getArgOperand(i))->getZExtValue();
  };
  switch (mark.getIntrinsicID()) {
  case Intrinsic::preserve_union_access_index: return base;
  case Intrinsic::preserve_array_access_index: {
    SmallVector<Value *, 4> indices(operand(1), builder.getInt32(0));
    indices.push_back(builder.getInt32(operand(2)));
    return builder.CreateInBoundsGEP(element, base, indices);
  }
  default: break;
  }
  const DataLayout &layout = mark.getDataLayout();
  auto *type = cast<StructType>(element);
  std::optional<uint64_t> offset = member_offset(mark);
  if (operand(1) < type->getNumElements() &&
      (!offset || layout.getStructLayout(type)->getElementOffset(operand(1)) == *offset))
    return builder.CreateStructGEP(type, base, operand(1));
  return builder.CreateInBoundsPtrAdd(
      base, builder.getInt64(*offset)); // of no bytes: clang has no element for it
}

} // namespace

bool is_mark(const Value *value) {
  auto *call = dyn_cast<IntrinsicInst>(value);
  switch (call ? call->getIntrinsicID() : Intrinsic::not_intrinsic) {
  case Intrinsic::preserve_struct_access_index:
  case Intrinsic::preserve_union_access_index:
  case Intrinsic::preserve_array_access_index: return true;
  default: return false;
  }
}

SmallVector<MemberStep, 4> steps_to(const Value *pointer) {
  SmallVector<MemberStep, 4> steps; // innermost first
  for (; pointer; pointer = computed_from(pointer))
    if (std::optional<MemberStep> step = step_of(pointer)) {
      if (!steps.empty() && !leads_on(*step, steps.back()))
        break; // a cast: what is there is taken for another record
      steps.push_back(*step);
    }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

bool leads_on(const MemberStep &step, const MemberStep &next) {
  return is_or_has_base(record_of(element_of(step.member->getBaseType())), record_of(next.type));
}

const Value *root_of(const Value *pointer) {
  const Value *root = pointer;
  for (; pointer; pointer = computed_from(pointer))
    if (is_mark(pointer))
      root = cast<CallBase>(pointer)->getArgOperand(0);
  return root;
}

bool leads_to_undescribed(const Value *pointer) {
  for (; pointer; pointer = computed_from(pointer))
    if (is_mark(pointer)) {
      const DICompositeType *record = record_of(type_in(*cast<IntrinsicInst>(pointer)));
      if (record && (record->isForwardDecl() || record->getElements().empty()))
        return true;
    }
  return false;
}

void remove_marks(Module &module) {
  SmallVector<IntrinsicInst *, 0> marks;
  for (Function &function : module)
    if (function.isIntrinsic())
      for (User *user : function.users())
        if (is_mark(user))
          marks.push_back(cast<IntrinsicInst>(user));
  for (IntrinsicInst *mark : marks) {
    mark->replaceAllUsesWith(address_of(*mark));
    mark->eraseFromParent();
  }
}

} // namespace assay::compiler
