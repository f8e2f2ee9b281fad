// A tag is metadata of an access: !assay.member !{type, first leaf, last leaf}, where the leaves
// are 1 and 0 for an access that the source does not make: a write to a bit-field first reads its
// storage. An access to something else has an empty tag. Of a copy, !assay.copy !{tag or null of
// the destination, tag or null of the source, bytes}.
//
// Optimisation keeps three of four tags: where it merges or makes anew loads and stores it drops
// metadata that it does not know. So a tag that is missing at the end is looked for in three more
// places, the best first:
//   the line and column    kept on merged and moved accesses; believed where all tagged accesses there were to one field
//   the base pointer       of another access at a constant distance that has a tag: what is there has the record's type
//   the alias tag (TBAA)   names the record and the offset, where strict aliasing is on
// Loads of different members that are likely to become one are kept apart (joined_loads.cc).
// What then has no field, but shares its line with accesses that had one, is reported as lost. It is not guessed.
//
// Refused: tags as operands of calls, which survive but hinder optimisation; alias tags of our own,
// which change what may be reordered.

#include "compiler/member_tags.h"

#include "abi/fields.h"
#include "compiler/library_members.h"
#include "compiler/vector_members.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr char kMember[] = "assay.member";
constexpr char kCopy[] = "assay.copy";
constexpr char kPlaces[] = "assay.places";

bool is_mark(const Value *value) {
  auto *call = dyn_cast<IntrinsicInst>(value);
  switch (call ? call->getIntrinsicID() : Intrinsic::not_intrinsic) {
  case Intrinsic::preserve_struct_access_index:
  case Intrinsic::preserve_union_access_index:
  case Intrinsic::preserve_array_access_index: return true;
  default: return false;
  }
}

// Where an address was computed from, by a mark or not; null: that is not said.
const Value *computed_from(const Value *pointer) {
  if (is_mark(pointer))
    return cast<CallBase>(pointer)->getArgOperand(0);
  auto *gep = dyn_cast<GEPOperator>(pointer);
  return gep ? gep->getPointerOperand() : nullptr;
}

// Perhaps a typedef.
const DIType *type_in(const IntrinsicInst &mark) {
  return dyn_cast_or_null<DIType>(mark.getMetadata(LLVMContext::MD_preserve_access_index));
}

// A step from a record to a member, as a mark says it.
struct Step {
  const DIType *type; // of the record; perhaps a typedef
  const DIDerivedType *member;
};

std::optional<Step> step_of(const Value *value) {
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
  return member ? std::optional(Step{type, member}) : std::nullopt;
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

// The members that lead to an address, from the outermost record of which the source says so.
SmallVector<Step, 4> steps_to(const Value *pointer) {
  SmallVector<Step, 4> steps; // innermost first
  for (; pointer; pointer = computed_from(pointer))
    if (std::optional<Step> step = step_of(pointer)) {
      if (!steps.empty() && !is_or_has_base(record_of(element_of(step->member->getBaseType())),
                                            record_of(steps.back().type)))
        break; // a cast: what is there is taken for another record
      steps.push_back(*step);
    }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

// Whether a member of a record leads to an address, and debug information does not say which
// members the record has: those of C++ modules are described elsewhere.
bool leads_to_undescribed(const Value *pointer) {
  for (; pointer; pointer = computed_from(pointer))
    if (is_mark(pointer)) {
      const DICompositeType *record = record_of(type_in(*cast<IntrinsicInst>(pointer)));
      if (record && (record->isForwardDecl() || record->getElements().empty()))
        return true;
    }
  return false;
}

uint64_t number_in(const MDNode &node, unsigned i) {
  return mdconst::extract<ConstantInt>(node.getOperand(i))->getZExtValue();
}

TagPlace place_of(const DILocation &where, bool is_write) {
  return {where.getScope()->getSubprogram(),
          (uint64_t)where.getLine() << 32 | (uint64_t)where.getColumn() << 1 | is_write};
}

unsigned inlining_depth(const DILocation &where) {
  unsigned depth = 0;
  for (const DILocation *call = where.getInlinedAt(); call; call = call->getInlinedAt())
    depth++;
  return depth;
}

ConstantAsMetadata *number_node(LLVMContext &context, uint64_t n) {
  return ConstantAsMetadata::get(ConstantInt::get(Type::getInt64Ty(context), n));
}

// The innermost calls that a place was inlined at; null: none. The same node for the same calls.
const MDNode *calls_around(const DILocation &where, unsigned count) {
  LLVMContext &context = where.getContext();
  MDNode *calls = nullptr;
  const DILocation *call = where.getInlinedAt();
  for (unsigned i = 0; i < count; i++, call = call->getInlinedAt()) {
    const auto [function, column] = place_of(*call, false);
    calls = MDNode::get(
        context, {const_cast<DISubprogram *>(function), number_node(context, column), calls});
  }
  return calls;
}

// Tags for the accesses of a module as clang has made it.
class Tagger {
public:
  explicit Tagger(Module &module) : module_(module), context_(module.getContext()) {}

  void run() {
    for (Function &function : module_) {
      find_variables(function);
      for (Instruction &instruction : instructions(function))
        tag(instruction);
    }
    write_places();
  }

private:
  MDNode *node(const DIType *type, LeafRange leaves) {
    return MDNode::get(context_,
                       {const_cast<DIType *>(type), number(leaves.first), number(leaves.last)});
  }
  ConstantAsMetadata *number(uint64_t n) { return number_node(context_, n); }

  // The tag of an access of so many bytes that clang makes without a mark: to the pointer to
  // virtual functions, and to a reference that is being initialized. What it points to is known
  // from the variable that holds the pointer.
  MDNode *tag_of_unmarked(const Value *pointer, uint64_t bytes) {
    APInt offset(64, 0);
    const Value *base =
        pointer->stripAndAccumulateConstantOffsets(module_.getDataLayout(), offset, true);
    uint64_t at = offset.getZExtValue();
    const DIType *type = record_at(base);
    if (SmallVector<Step, 4> steps = steps_to(base); !steps.empty()) {
      type = steps[0].type;
      for (const Step &step : steps)
        at += step.member->getOffsetInBits() / 8;
    }
    const RecordLayout *layout = type ? layouts_.find(type) : nullptr;
    if (!layout || at + bytes > layout->size)
      return nullptr;
    std::optional<LeafRange> leaves = RecordLayouts::leaves_in(*layout, at, bytes);
    return leaves ? node(type, *leaves) : nullptr;
  }

  // The tag of an access to just what the marks lead to.
  MDNode *tag_of_access(const Value *pointer, uint64_t bytes) {
    uint64_t of_member = 0;
    MDNode *tag = tag_of(pointer, &of_member);
    const bool is_one = tag && number_in(*tag, 1) == number_in(*tag, 2);
    MDNode *unmarked = is_one ? nullptr : tag_of_unmarked(pointer, bytes);
    return unmarked ? unmarked : tag;
  }

  // The tag of the member that the marks lead to, and its bytes.
  MDNode *tag_of(const Value *pointer, uint64_t *bytes = nullptr) {
    SmallVector<Step, 4> steps = steps_to(pointer);
    const RecordLayout *layout = steps.empty() ? nullptr : layouts_.find(steps[0].type);
    if (!layout)
      return nullptr;
    SmallVector<const DIDerivedType *, 4> path;
    for (const Step &step : steps)
      path.push_back(step.member);
    std::optional<LeafRange> leaves = RecordLayouts::leaves_at(*layout, path);
    if (bytes)
      *bytes = steps.back().member->getSizeInBits() / 8;
    return leaves ? node(steps[0].type, *leaves) : nullptr;
  }

  void find_variables(Function &function) {
    variables_.clear();
    for (Instruction &instruction : instructions(function))
      for (DbgVariableRecord &record : filterDbgVars(instruction.getDbgRecordRange()))
        if (record.isDbgDeclare() && record.getExpression()->getNumElements() == 0)
          if (auto *slot = dyn_cast_or_null<AllocaInst>(record.getAddress()))
            variables_[slot] = record.getVariable()->getType();
  }

  // The type of the record that a pointer points to, as far as variables say.
  const DIType *record_at(const Value *pointer) {
    if (auto *gep = dyn_cast<GEPOperator>(pointer); // an element
        gep && gep->getNumIndices() == 1 && gep->getSourceElementType()->isStructTy())
      return record_at(gep->getPointerOperand());
    if (isa<AllocaInst>(pointer)) {
      const DIType *type = element_of(variables_.lookup(pointer));
      return record_of(type) ? variables_.lookup(pointer) : nullptr;
    }
    if (auto *load = dyn_cast<LoadInst>(pointer)) {
      const DIType *type = variables_.lookup(load->getPointerOperand());
      if (SmallVector<Step, 4> steps = steps_to(load->getPointerOperand()); !steps.empty())
        type = steps.back().member->getBaseType();
      auto *to = dyn_cast_or_null<DIDerivedType>(element_of(type));
      if (!to ||
          !is_contained({dwarf::DW_TAG_pointer_type, dwarf::DW_TAG_reference_type}, to->getTag()))
        return nullptr;
      return record_of(to->getBaseType()) ? to->getBaseType() : nullptr;
    }
    if (auto *global = dyn_cast<GlobalVariable>(pointer)) {
      SmallVector<DIGlobalVariableExpression *, 1> named;
      global->getDebugInfo(named);
      const DIType *type = named.empty() ? nullptr : named[0]->getVariable()->getType();
      return record_of(element_of(type)) ? element_of(type) : nullptr;
    }
    return nullptr;
  }

  // The tag of one side of a copy of whole records or members.
  MDNode *copied(const Value *pointer, uint64_t length, uint64_t &bytes) {
    uint64_t of_member = 0;
    if (MDNode *tag = tag_of(pointer, &of_member)) {
      bytes = of_member;
      return of_member && length % of_member == 0 ? tag : nullptr;
    }
    const DIType *type = record_at(pointer);
    const RecordLayout *layout = type ? layouts_.find(element_of(type)) : nullptr;
    if (!layout || !layout->size || length % layout->size != 0)
      return nullptr;
    bytes = layout->size;
    return node(type, {0, (uint32_t)layout->leaves.size() - 1});
  }

  void tag_copy(AnyMemIntrinsic &call) {
    auto *length = dyn_cast<ConstantInt>(call.getLength());
    if (!length || length->isZero())
      return;
    uint64_t to_bytes = 0, from_bytes = 0;
    MDNode *to = copied(call.getDest(), length->getZExtValue(), to_bytes), *from = nullptr;
    if (auto *transfer = dyn_cast<AnyMemTransferInst>(&call))
      from = copied(transfer->getSource(), length->getZExtValue(), from_bytes);
    if (to || from)
      call.setMetadata(kCopy,
                       MDNode::get(context_, {to, from, number(to ? to_bytes : from_bytes)}));
  }

  void tag(Instruction &instruction) {
    if (auto *memory = dyn_cast<AnyMemIntrinsic>(&instruction)) {
      tag_copy(*memory);
      return;
    }
    const Value *pointer = getLoadStorePointerOperand(&instruction);
    Type *accessed = pointer ? getLoadStoreType(&instruction) : nullptr;
    bool writes = isa<StoreInst>(instruction);
    if (auto *rmw = dyn_cast<AtomicRMWInst>(&instruction))
      pointer = rmw->getPointerOperand(), accessed = rmw->getType(), writes = true;
    else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction))
      pointer = exchange->getPointerOperand(), accessed = exchange->getCompareOperand()->getType(),
      writes = true;
    if (!pointer)
      return;
    MDNode *tag = tag_of_access(
        pointer, module_.getDataLayout().getTypeStoreSize(accessed).getKnownMinValue());
    if (!tag && leads_to_undescribed(pointer))
      tag = MDNode::get(context_, {number(0)});
    else if (!tag)
      tag = MDNode::get(context_, {});
    else if (is_first_half_of_write(instruction))
      tag = node(cast<DIType>(tag->getOperand(0)), {1, 0});
    instruction.setMetadata(kMember, tag);
    const DILocation *where = instruction.getDebugLoc();
    if (!where || !where->getLine())
      return;
    auto [known, is_new] = places_.insert(
        {{place_of(*where, writes), calls_around(*where, inlining_depth(*where))}, tag});
    if (!is_new && known->second != tag)
      known->second = nullptr;
  }

  // Of a bit-field: its storage is read, some bits are cleared and set, and it is written to the same address.
  static bool is_first_half_of_write(const Instruction &instruction) {
    auto *load = dyn_cast<LoadInst>(&instruction);
    auto *clear = load && load->hasOneUse() ? dyn_cast<BinaryOperator>(load->user_back()) : nullptr;
    if (!clear || clear->getOpcode() != Instruction::And || !clear->hasOneUse() ||
        !isa<ConstantInt>(clear->getOperand(1)))
      return false;
    const User *next = clear->user_back();
    if (auto *set = dyn_cast<BinaryOperator>(next);
        set && set->getOpcode() == Instruction::Or && set->hasOneUse())
      next = set->user_back();
    auto *store = dyn_cast<StoreInst>(next);
    return store && store->getPointerOperand() == load->getPointerOperand() &&
           is_mark(load->getPointerOperand());
  }

  void write_places() {
    NamedMDNode *all = module_.getOrInsertNamedMetadata(kPlaces);
    for (auto &[place, tag] : places_)
      all->addOperand(MDNode::get(context_, {const_cast<DISubprogram *>(place.first.first),
                                             number(place.first.second), tag,
                                             const_cast<MDNode *>(place.second)}));
  }

  Module &module_;
  LLVMContext &context_;
  RecordLayouts layouts_;
  DenseMap<const Value *, const DIType *>
      variables_; // of the function, by their place on the stack
  MapVector<TagPlaceInCalls, MDNode *> places_;
};

// The offset of the member, in bytes, as debug information has it. None for bit-fields, whose
// storage unit clang has chosen.
std::optional<uint64_t> member_offset(const CallBase &mark) {
  std::optional<Step> step = step_of(&mark);
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

MDNode *node_in(const MDNode &node, unsigned i) {
  return dyn_cast_or_null<MDNode>(node.getOperand(i).get());
}

// A tag of no type: leads_to_undescribed().
bool is_undescribed(const MDNode &tag) {
  return tag.getNumOperands() == 1;
}

} // namespace

void tag_members(Module &module) {
  open_library_calls(module, [](const Value &pointer) {
    SmallVector<Step, 4> steps = steps_to(&pointer);
    return !steps.empty() && !is_of_library(record_of(steps.front().type));
  });
  Tagger(module).run();
  remove_marks(module);
}

MDNode *member_tag(const Instruction &access) {
  return access.getMetadata(kMember);
}

MemberTags::MemberTags(Module &module) : layout_(module.getDataLayout()) {
  NamedMDNode *all = module.getNamedMetadata(kPlaces);
  for (const MDNode *node :
       all ? all->operands() : iterator_range<NamedMDNode::op_iterator>({}, {})) {
    auto *function = dyn_cast_or_null<DISubprogram>(node->getOperand(0).get());
    uint64_t place = number_in(*node, 1);
    MDNode *tag = node_in(*node, 2);
    at_place_[{{function, place}, node_in(*node, 3)}] = tag;
    if (!tag || tag->getNumOperands())
      at_line_.insert({function, place >> 32 << 1 | (place & 1)});
    if (!tag || !tag->getNumOperands() || is_undescribed(*tag))
      continue;
    auto *type = cast<DIType>(tag->getOperand(0));
    if (const DICompositeType *record = record_of(type))
      for (StringRef name : {record->getIdentifier(), record->getName(), type->getName()})
        if (!name.empty())
          by_name_.try_emplace(name, type);
  }
}

void MemberTags::remove(Module &module) {
  if (NamedMDNode *all = module.getNamedMetadata(kPlaces))
    all->eraseFromParent();
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      instruction.setMetadata(kMember, nullptr);
      instruction.setMetadata(kCopy, nullptr);
    }
}

MemberAccess MemberTags::read(const MDNode *tag) {
  if (!tag || !tag->getNumOperands())
    return {};
  if (is_undescribed(*tag)) {
    MemberAccess lost;
    lost.is_lost = true;
    return lost;
  }
  const RecordLayout *layout = layouts_.find(cast<DIType>(tag->getOperand(0)));
  MemberAccess found;
  found.record = layout;
  found.leaves = {(uint32_t)number_in(*tag, 1), (uint32_t)number_in(*tag, 2)};
  return found;
}

const MDNode *MemberTags::tag_at(const Instruction &instruction, bool writes) const {
  if (const MDNode *tag = member_tag(instruction))
    return tag;
  const DILocation *where = instruction.getDebugLoc();
  if (!where)
    return nullptr;
  // The optimiser may have inlined it further than it was when it was tagged.
  const TagPlace place = place_of(*where, writes);
  for (unsigned calls = inlining_depth(*where);; calls--)
    if (auto known = at_place_.find({place, calls_around(*where, calls)});
        known != at_place_.end() || !calls)
      return known != at_place_.end() ? known->second : nullptr;
}

void MemberTags::begin(Function &function) {
  bases_.clear();
  for (Instruction &instruction : instructions(function)) {
    const Value *pointer = getLoadStorePointerOperand(&instruction);
    const MDNode *tag = pointer ? member_tag(instruction) : nullptr;
    MemberAccess access = read(tag);
    if (!access.record || access.leaves.first != access.leaves.last)
      continue; // of several, or of none
    const Leaf &leaf = access.record->leaves[access.leaves.first];
    if (leaf.elements > 1 || leaf.flags & ASSAY_LEAF_ARRAY || leaf.offset_bits % 8)
      continue;
    APInt offset(64, 0);
    const Value *base = pointer->stripAndAccumulateConstantOffsets(layout_, offset, true);
    bases_.try_emplace(
        base, Base{access.record, offset.getSExtValue() - (int64_t)(leaf.offset_bits / 8)});
  }
}

MemberTags::InRecord MemberTags::by_base(const Access &access) const {
  APInt offset(64, 0);
  const Value *base = access.pointer->stripAndAccumulateConstantOffsets(layout_, offset, true);
  auto known = bases_.find(base);
  if (known == bases_.end())
    return {};
  const RecordLayout *record = known->second.record;
  const int64_t at = offset.getSExtValue() - known->second.offset;
  return at >= 0 && (uint64_t)at < record->size ? InRecord{record, (uint64_t)at} : InRecord();
}

MemberTags::InRecord MemberTags::by_alias_tag(const Instruction &instruction) {
  const MDNode *tag = instruction.getMetadata(LLVMContext::MD_tbaa);
  if (!tag || tag->getNumOperands() < 3)
    return {};
  const MDNode *base = node_in(*tag, 0);
  auto *name = base ? dyn_cast<MDString>(base->getOperand(0)) : nullptr;
  const RecordLayout *record = name ? layouts_.find(by_name_.lookup(name->getString())) : nullptr;
  const uint64_t at = number_in(*tag, 2);
  return record && base != node_in(*tag, 1) && at < record->size ? InRecord{record, at}
                                                                 : InRecord();
}

// Whether the optimiser has made it of accesses to several fields, of which its place in the source names one.
bool MemberTags::is_joined(const Instruction &instruction, const Access &access,
                           const MemberAccess &tagged) {
  const Leaf &leaf = tagged.record->leaves[tagged.leaves.first];
  const bool is_whole = leaf.size_bits && leaf.size_bits % 8 == 0 && leaf.offset_bits % 8 == 0;
  if (member_tag(instruction) || tagged.leaves.first != tagged.leaves.last || !is_whole)
    return false;
  return vector_of(instruction) || access.bytes * 8 > leaf.size_bits;
}

// Of an access to more than the field that its place in the source names, which is one of those it
// was made of: mostly its address is computed from the record's; else that field is the first.
MemberTags::InRecord MemberTags::around(const MemberAccess &tagged, const Access &access) const {
  const RecordLayout &record = *tagged.record;
  const uint64_t field = record.leaves[tagged.leaves.first].offset_bits / 8;
  APInt offset(64, 0);
  access.pointer->stripAndAccumulateConstantOffsets(layout_, offset, true);
  const auto size = (int64_t)record.size;
  const uint64_t at = size ? (uint64_t)((offset.getSExtValue() % size + size) % size) : 0;
  const uint64_t reached = field >= at ? field : field + record.size; // in this object, or the next
  return {&record, reached < at + access.bytes ? at : field};
}

// An access that the optimiser has made of several has no line; of which fields, its address says no more.
bool MemberTags::is_one_of_several(const Value *pointer) const {
  auto is_in_record = [&](const Value *address) {
    APInt offset(64, 0);
    return bases_.contains(address->stripAndAccumulateConstantOffsets(layout_, offset, true));
  };
  APInt offset(64, 0);
  pointer = pointer->stripAndAccumulateConstantOffsets(layout_, offset, true);
  if (auto *gep = dyn_cast<GEPOperator>(pointer))
    return is_in_record(gep->getPointerOperand());
  if (auto *choice = dyn_cast<SelectInst>(pointer))
    return is_in_record(choice->getTrueValue()) || is_in_record(choice->getFalseValue());
  auto *phi = dyn_cast<PHINode>(pointer);
  return phi && any_of(phi->incoming_values(), is_in_record);
}

SmallVector<MemberAccess, 1> MemberTags::find(Instruction &instruction, const Access &access) {
  const MDNode *tag = tag_at(instruction, access.writes);
  if (tag && !tag->getNumOperands())
    return {};
  InRecord place;
  if (MemberAccess found = read(tag); found.is_lost) {
    return {found};
  } else if (found.record) {
    if (found.leaves.first > found.leaves.last)
      return {};
    if (!is_joined(instruction, access, found))
      return {found};
    place = around(found, access);
  }
  if (!place.record)
    place = by_base(access);
  if (!place.record)
    place = by_alias_tag(instruction);
  SmallVector<MemberAccess, 1> all;
  if (place.record)
    for (const JoinedMembers &each :
         joined_members(instruction, *place.record, place.offset, access.bytes))
      all.push_back({place.record, each.leaves, false, each.accesses, each.from});
  if (!all.empty())
    return all;
  MemberAccess none;
  auto *variable = dyn_cast<AllocaInst>(access.pointer);
  if (variable && !variable->getAllocatedType()->isAggregateType())
    return {};
  const DILocation *where = instruction.getDebugLoc();
  if (where && where->getLine())
    none.is_lost = at_line_.contains(
        {where->getScope()->getSubprogram(), (uint64_t)where->getLine() << 1 | access.writes});
  else
    none.is_lost = is_one_of_several(access.pointer);
  return {none};
}

MemberCopy MemberTags::find_copy(const Instruction &instruction) {
  const MDNode *tag = instruction.getMetadata(kCopy);
  if (!tag)
    return {};
  return {read(node_in(*tag, 0)), read(node_in(*tag, 1)), number_in(*tag, 2)};
}

} // namespace assay::compiler
