// Clang's marks say which member an address is of. An access without marks, which clang makes to
// what it adds itself, gets its tag from the type of the declaration that its address comes from: a
// variable, a member, a function's result.

#include "compiler/tag_members.h"

#include <optional>

#include "abi/fields.h"
#include "compiler/clang_marks.h"
#include "compiler/library_members.h"
#include "compiler/member_paths.h"
#include "compiler/member_tag_nodes.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr unsigned kMaxTypeSteps = 16; // from an address to the declaration that says what is there

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
  static MDNode *node(const DIType *type, LeafRange leaves) {
    return member_node(*type, leaves.first, leaves.last);
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
    if (SmallVector<MemberStep, 4> steps = paths_.steps_to(base); !steps.empty()) {
      type = steps[0].type;
      for (const MemberStep &step : steps)
        at += step.member->getOffsetInBits() / 8;
    }
    const RecordLayout *layout = type ? layouts_.find(type) : nullptr;
    if (type && (!layout || !layout->size))
      return undescribed_node(context_);
    if (!layout || at + bytes > layout->size)
      return nullptr;
    std::optional<LeafRange> leaves = RecordLayouts::leaves_in(*layout, at, bytes);
    return leaves ? node(type, *leaves) : nullptr;
  }

  // The tag of an access to a member of a global variable by an address that is kept.
  MDNode *tag_in_variable(const Value *pointer, uint64_t bytes) {
    const auto place = paths_.in_variable(pointer, module_.getDataLayout());
    const DIType *type = place ? record_at(place->variable) : nullptr;
    const RecordLayout *layout = type ? layouts_.find(element_of(type)) : nullptr;
    if (!layout || !layout->size)
      return nullptr;
    const uint64_t at = place->offset % layout->size;
    std::optional<LeafRange> leaves = RecordLayouts::leaves_in(*layout, at, bytes);
    if (!leaves)
      return nullptr;
    if (place->moves && !at && bytes == 1)
      return nullptr; // perhaps over the bytes of all of it
    if (place->moves && !begins_array(*layout, *leaves, at))
      return undescribed_node(context_);
    return node(type, *leaves);
  }

  // And may not be the end of another one, from which a loop steps back.
  static bool begins_array(const RecordLayout &layout, LeafRange leaves, uint64_t at) {
    const Leaf &leaf = layout.leaves[leaves.first];
    return leaves.first == leaves.last && leaf.flags & ASSAY_LEAF_ARRAY && leaf.elements == 1 &&
           leaf.offset_bits == at * 8 && none_of(layout.leaves, [&](const Leaf &other) {
             return other.flags & ASSAY_LEAF_ARRAY &&
                    other.offset_bits + other.size_bits == leaf.offset_bits;
           });
  }

  // The tag of an access to just what the marks lead to.
  MDNode *tag_of_access(const Value *pointer, uint64_t bytes) {
    if (is_by_pointer_to_member(pointer) && is_of_chosen_member(pointer, bytes))
      return undescribed_node(context_);
    uint64_t of_member = 0;
    MDNode *tag = tag_of(pointer, &of_member);
    const bool is_one = tag && number_in(*tag, 1) == number_in(*tag, 2);
    MDNode *unmarked = is_one ? nullptr : tag_of_unmarked(pointer, bytes);
    if (!tag && !unmarked)
      return tag_in_variable(pointer, bytes);
    return unmarked ? unmarked : tag;
  }

  // The tag of the member that the marks lead to, and its bytes.
  MDNode *tag_of(const Value *pointer, uint64_t *bytes = nullptr) {
    SmallVector<MemberStep, 4> steps = paths_.steps_to(pointer);
    const RecordLayout *layout = steps.empty() ? nullptr : layouts_.find(steps[0].type);
    if (!layout)
      return nullptr;
    SmallVector<const DIDerivedType *, 4> path;
    for (const MemberStep &step : steps)
      path.push_back(step.member);
    std::optional<LeafRange> leaves = RecordLayouts::leaves_at(*layout, path);
    if (bytes)
      *bytes = steps.back().member->getSizeInBits() / 8;
    return leaves ? node(steps[0].type, *leaves) : nullptr;
  }

  void find_variables(Function &function) {
    variables_.clear();
    values_.clear();
    for (Instruction &instruction : instructions(function))
      for (DbgVariableRecord &record : filterDbgVars(instruction.getDbgRecordRange()))
        if (record.isDbgDeclare() && record.getExpression()->getNumElements() == 0)
          if (auto *slot = dyn_cast_or_null<AllocaInst>(record.getAddress()))
            variables_[slot] = record.getVariable()->getType();
  }

  // The type of the record that a pointer points to, as far as declarations say.
  const DIType *record_at(const Value *pointer) {
    const DIType *type = type_at(pointer);
    if (record_of(type)) // as it is named
      return type;
    type = element_of(type);
    return record_of(type) ? type : nullptr;
  }

  // What a declaration of the program says of what lies at an address: of a variable, of the member that marks lead
  // to, of what a pointer or a function's result points to. An element of an array may have the array's type.
  const DIType *type_at(const Value *pointer, unsigned depth = 0) {
    if (depth == kMaxTypeSteps)
      return nullptr;
    if (isa<AllocaInst>(pointer))
      return variables_.lookup(pointer);
    if (SmallVector<MemberStep, 4> steps = steps_to(pointer); !steps.empty())
      return is_mark(pointer) || is_element(pointer) ? steps.back().member->getBaseType() : nullptr;
    if (is_mark(pointer)) // an element
      return type_at(cast<CallBase>(pointer)->getArgOperand(0), depth + 1);
    if (is_element(pointer))
      return type_at(cast<GEPOperator>(pointer)->getPointerOperand(), depth + 1);
    if (auto *load = dyn_cast<LoadInst>(pointer)) {
      if (const Value *bound = bound_to(load->getPointerOperand()))
        return type_at(bound, depth + 1);
      return pointee(type_at(load->getPointerOperand(), depth + 1));
    }
    if (auto *call = dyn_cast<CallBase>(pointer))
      return pointee(result_of(*call));
    if (auto *global = dyn_cast<GlobalVariable>(pointer)) {
      SmallVector<DIGlobalVariableExpression *, 1> named;
      global->getDebugInfo(named);
      return named.empty() ? nullptr : named[0]->getVariable()->getType();
    }
    return nullptr;
  }

  // What `auto &[a, b] = x` binds its reference to, which is no variable in debug information; null: it is none. Clang
  // makes no marks where a and b are used.
  const Value *bound_to(const Value *reference) {
    auto *slot = dyn_cast<AllocaInst>(reference);
    return slot && !variables_.contains(slot) ? paths_.kept_in(*slot) : nullptr;
  }

  // Computed from the address of another element, or of the array.
  static bool is_element(const Value *pointer) {
    auto *gep = dyn_cast<GEPOperator>(pointer);
    if (!gep)
      return false;
    if (gep->getSourceElementType()->isArrayTy())
      return all_of(drop_end(gep->indices()), [](const Value *index) {
        auto *constant = dyn_cast<ConstantInt>(index);
        return constant && constant->isZero();
      });
    return gep->getNumIndices() == 1 && (gep->getSourceElementType()->isStructTy() ||
                                         gep->getSourceElementType()->isPointerTy());
  }

  // What a pointer or a reference of the type, or each of an array of them, leads to.
  static const DIType *pointee(const DIType *type) {
    auto *to = dyn_cast_or_null<DIDerivedType>(element_of(type));
    return to && is_contained({dwarf::DW_TAG_pointer_type, dwarf::DW_TAG_reference_type,
                               dwarf::DW_TAG_rvalue_reference_type},
                              to->getTag())
               ? to->getBaseType()
               : nullptr;
  }

  static const DIType *result_of(const CallBase &call) {
    const Function *callee = call.getCalledFunction();
    const DISubprogram *declared = callee ? callee->getSubprogram() : nullptr;
    const DISubroutineType *type = declared ? declared->getType() : nullptr;
    return type && type->getTypeArray().size() ? type->getTypeArray()[0] : nullptr;
  }

  // What a new-expression makes of another object where no declaration says it: clang notes it of the allocation; of a
  // place that is given, it is what the pointer is kept as.
  const DIType *made_at(const Value *pointer) {
    if (auto *call = dyn_cast<CallBase>(pointer))
      if (auto *type = dyn_cast_or_null<DIType>(call->getMetadata("heapallocsite")))
        return type;
    for (const User *user : pointer->users())
      if (auto *store = dyn_cast<StoreInst>(user); store && store->getValueOperand() == pointer)
        if (const DIType *type = pointee(type_at(store->getPointerOperand())); record_of(type))
          return type;
    return nullptr;
  }

  // Those of an array, of records, if the bytes are some of them.
  bool are_elements(const Value *pointer, uint64_t bytes) {
    const SmallVector<MemberStep, 4> steps = paths_.steps_to(pointer);
    const DICompositeType *element =
        steps.empty() ? nullptr : record_of(element_of(steps.back().member->getBaseType()));
    const uint64_t size = element ? element->getSizeInBits() / 8 : 0;
    return size && bytes % size == 0 && bytes < steps.back().member->getSizeInBits() / 8;
  }

  // The tag of one side of a copy of whole records or members.
  MDNode *copied(const Value *pointer, std::optional<uint64_t> length, uint64_t &bytes,
                 bool may_be_new = false) {
    uint64_t of_member = 0;
    if (MDNode *tag = tag_of(pointer, &of_member)) {
      bytes = length && are_elements(pointer, *length) ? *length : of_member;
      if (length && bytes && *length > bytes) { // goes on into other members
        bytes = *length;
        return tag_of_unmarked(pointer, *length);
      }
      return length && *length == bytes ? tag : nullptr;
    }
    const DIType *type = record_at(pointer);
    if (!type && may_be_new)
      type = made_at(pointer);
    const RecordLayout *layout = type ? layouts_.find(element_of(type)) : nullptr;
    if (!layout || !layout->size || (length && *length % layout->size != 0))
      return nullptr;
    bytes = layout->size;
    return node(type, {0, (uint32_t)layout->leaves.size() - 1});
  }

  void tag_copy(AnyMemIntrinsic &call) {
    std::optional<uint64_t> length;
    if (auto *constant = dyn_cast<ConstantInt>(call.getLength()))
      length = constant->getZExtValue();
    if (length && !*length)
      return;
    auto *transfer = dyn_cast<AnyMemTransferInst>(&call);
    uint64_t to_bytes = 0, from_bytes = 0;
    MDNode *to = copied(call.getDest(), length, to_bytes, transfer != nullptr), *from = nullptr;
    if (transfer)
      from = copied(transfer->getSource(), length, from_bytes);
    if (to && from && to_bytes != from_bytes && !length)
      from = nullptr;
    if (!to && !from)
      return;
    MDNode *tag = copy_node(context_, {to, from, to_bytes, from_bytes, transfer != nullptr});
    call.setMetadata(kCopy, tag);
    note_place(copy_places_, call, tag);
    if (to && transfer)
      note_source(*transfer, copy_node(context_, {to, nullptr, to_bytes, 0, false}));
  }

  static void note_place(MapVector<TagPlace, MDNode *> &places, const CallBase &call, MDNode *tag) {
    if (const DILocation *where = call.getDebugLoc(); where && where->getLine())
      note(places, place_of(*where, true), tag);
  }

  template <class Place>
  static void note(MapVector<Place, MDNode *> &places, const Place &place, MDNode *tag) {
    auto [known, is_new] = places.insert({place, tag});
    if (!is_new && known->second != tag)
      known->second = nullptr; // there are several
  }

  // `*p = P{}` sets a value that has no name, and copies it: optimised, it sets *p, in the place of the first.
  void note_source(const AnyMemTransferInst &copy, MDNode *tag) {
    auto *value = dyn_cast<AllocaInst>(copy.getSource());
    if (value && !variables_.contains(value))
      for (const User *user : value->users())
        if (auto *set = dyn_cast<AnyMemSetInst>(user))
          note_place(copy_places_, *set, tag);
  }

  // What a call accesses of members that it is given the addresses of is known at the end, if it is one of libc's.
  void tag_arguments(CallBase &call) {
    SmallVector<Metadata *, 4> tags;
    for (const Value *argument : call.args())
      tags.push_back(argument->getType()->isPointerTy() ? tag_of(argument) : nullptr);
    if (all_of(tags, [](const Metadata *tag) { return tag == nullptr; }))
      return;
    MDNode *tag = MDNode::get(context_, tags);
    call.setMetadata(kArguments, tag);
    note_place(argument_places_, call, tag);
  }

  void tag(Instruction &instruction) {
    if (auto *memory = dyn_cast<AnyMemIntrinsic>(&instruction)) {
      tag_copy(*memory);
      const MDNode *tag = memory->getMetadata(kCopy);
      if (!tag || !copy_in(*tag).written || !copy_in(*tag).read)
        tag_arguments(*memory);
      return;
    }
    if (auto *call = dyn_cast<CallBase>(&instruction); call && call->getCalledFunction() &&
                                                       call->getCalledFunction()->isDeclaration() &&
                                                       !call->getCalledFunction()->isIntrinsic())
      tag_arguments(*call);
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
    const uint64_t bytes = module_.getDataLayout().getTypeStoreSize(accessed).getKnownMinValue();
    MDNode *tag = tag_of_access(pointer, bytes);
    const bool is_first_half = tag && is_first_half_of_write(instruction);
    if (!tag && (leads_to_undescribed(pointer) || is_of_chosen_member(pointer, bytes)))
      tag = undescribed_node(context_);
    else if (!tag)
      tag = MDNode::get(context_, {});
    else if (is_first_half)
      tag = node(cast<DIType>(tag->getOperand(0)), {1, 0});
    instruction.setMetadata(kMember, tag);
    const DILocation *where = instruction.getDebugLoc();
    if (!is_value(pointer) && where && where->getLine())
      note(is_first_half ? first_half_places_ : places_,
           {place_of(*where, writes), calls_around(*where, inlining_depth(*where))}, tag);
  }

  // One of several members, or one that a pointer to member names: which one is known when the
  // program runs. A loop over the bytes of a struct is of no member.
  bool is_of_chosen_member(const Value *pointer, uint64_t bytes) {
    if (auto *load = dyn_cast<LoadInst>(pointer))
      if (auto *slot = dyn_cast<AllocaInst>(load->getPointerOperand()))
        if (const Value *kept = paths_.kept_in(*slot); kept && !isa<LoadInst>(kept))
          return is_of_chosen_member(kept, bytes);
    if (auto *choice = dyn_cast<SelectInst>(pointer))
      return !steps_to(choice->getTrueValue()).empty() ||
             !steps_to(choice->getFalseValue()).empty();
    if (auto *phi = dyn_cast<PHINode>(pointer))
      return any_of(phi->incoming_values(),
                    [](const Use &value) { return !steps_to(value).empty(); });
    return bytes > 1 && is_by_pointer_to_member(pointer) &&
           record_at(cast<GEPOperator>(pointer)->getPointerOperand());
  }

  // The distance is a variable number of bytes. So is that in an array of char, which is no record.
  static bool is_by_pointer_to_member(const Value *pointer) {
    auto *gep = dyn_cast<GEPOperator>(pointer);
    return gep && gep->getSourceElementType()->isIntegerTy(8) && !gep->hasAllConstantIndices();
  }

  // A variable that the optimiser keeps in registers: no access to it is left.
  bool is_value(const Value *pointer) {
    auto *variable = dyn_cast<AllocaInst>(pointer);
    if (!variable)
      return false;
    auto [known, is_new] = values_.try_emplace(variable, false);
    if (is_new)
      known->second = isAllocaPromotable(variable);
    return known->second;
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
    if (!store || store->getPointerOperand() != load->getPointerOperand() ||
        !is_mark(load->getPointerOperand()))
      return false;
    const SmallVector<MemberStep, 4> steps = steps_to(load->getPointerOperand());
    return !steps.empty() && steps.back().member->isBitField();
  }

  void write_places() {
    for (const auto &[place, tag] : first_half_places_)
      places_.insert({place, tag}); // of `b |= 1`, the read of b is the one that the source makes
    NamedMDNode *all = module_.getOrInsertNamedMetadata(kPlaces);
    for (auto &[place, tag] : places_)
      all->addOperand(MDNode::get(context_, {const_cast<DISubprogram *>(place.first.first),
                                             number(place.first.second), tag,
                                             const_cast<MDNode *>(place.second)}));
    write_places(kCopyPlaces, copy_places_);
    write_places(kArgumentPlaces, argument_places_);
  }

  void write_places(const char *name, const MapVector<TagPlace, MDNode *> &places) {
    NamedMDNode *all = module_.getOrInsertNamedMetadata(name);
    for (auto &[place, tag] : places)
      all->addOperand(MDNode::get(
          context_, {const_cast<DISubprogram *>(place.first), number(place.second), tag}));
  }

  Module &module_;
  LLVMContext &context_;
  RecordLayouts layouts_;
  MemberPaths paths_;
  DenseMap<const Value *, const DIType *>
      variables_;                               // of the function, by their place on the stack
  DenseMap<const AllocaInst *, bool> values_;   // of the function
  MapVector<TagPlaceInCalls, MDNode *> places_; // null: there are several
  MapVector<TagPlaceInCalls, MDNode *> first_half_places_;
  MapVector<TagPlace, MDNode *> copy_places_, argument_places_; // null: there are several
};

} // namespace

void tag_members(Module &module) {
  open_library_calls(module, [](const Value &pointer) {
    SmallVector<MemberStep, 4> steps = steps_to(&pointer);
    return !steps.empty() && !is_of_library(record_of(steps.front().type));
  });
  Tagger(module).run();
  remove_marks(module);
}

} // namespace assay::compiler
