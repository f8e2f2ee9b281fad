// Optimisation keeps three of four tags: where it merges or makes anew loads and stores it drops
// metadata that it does not know. So a tag that is missing at the end is looked for in three more
// places, the best first:
//   the line and column    kept on merged and moved accesses; believed where all tagged accesses there were to one field
//   the base pointer       of another access at a constant distance that has a tag: what is there has the record's type
//   the alias tag (TBAA)   names the record and the offset, where strict aliasing is on
// Loads of different members that are likely to become one are kept apart (joined_loads.cc), or told apart again at the
// end (chosen_members.cc).
// What then has no field, but shares its line with accesses that had one, is reported as lost. It is not guessed.
//
// Refused: tags as operands of calls, which survive but hinder optimisation; alias tags of our own,
// which change what may be reordered.

#include "compiler/member_tags.h"

#include "abi/fields.h"
#include "compiler/vector_members.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace assay::compiler {

MDNode *member_tag(const Instruction &access) {
  return access.getMetadata(kMember);
}

bool steps_by(const GEPOperator &indexed, uint64_t record_bytes, const DataLayout &layout) {
  SmallMapVector<Value *, APInt, 4> steps;
  APInt constant(64, 0);
  return record_bytes && indexed.collectOffset(layout, 64, steps, constant) &&
         all_of(steps, [&](const auto &step) { return step.second.urem(record_bytes) == 0; });
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
    if (!tag)
      unclear_.insert(function);
    if (!tag || !tag->getNumOperands() || is_undescribed(*tag))
      continue;
    if (const MemberAccess access = read(tag); access.leaves.first == access.leaves.last)
      accessed_.insert(
          {function, {access.record, (uint64_t)access.leaves.first << 1 | (place & 1)}});
    auto *type = cast<DIType>(tag->getOperand(0));
    if (const DICompositeType *record = record_of(type)) {
      for (StringRef name : {record->getIdentifier(), record->getName(), type->getName()})
        if (!name.empty())
          by_name_.try_emplace(name, type);
      note_bases(*record);
    }
  }
  for (auto [name, places] : {std::pair(kCopyPlaces, &copies_at_place_),
                              std::pair(kArgumentPlaces, &arguments_at_place_)})
    if (NamedMDNode *noted = module.getNamedMetadata(name))
      for (const MDNode *node : noted->operands())
        (*places)[{dyn_cast_or_null<DISubprogram>(node->getOperand(0).get()),
                   number_in(*node, 1)}] = node_in(*node, 2);
  for (const auto &[place, tag] : copies_at_place_)
    for (const bool writes : {false, true})
      if (!tag || (writes ? copy_in(*tag).written : copy_in(*tag).read))
        at_line_.insert({place.first, place.second >> 32 << 1 | writes});
}

void MemberTags::note_bases(const DICompositeType &record) {
  for (const DINode *node : record.getElements())
    if (auto *base = dyn_cast_or_null<DIDerivedType>(node);
        base && base->getTag() == dwarf::DW_TAG_inheritance)
      if (const DICompositeType *of_base = record_of(base->getBaseType());
          of_base && inherited_.insert(of_base).second)
        note_bases(*of_base);
}

void MemberTags::remove(Module &module) {
  for (const char *name : {kPlaces, kCopyPlaces, kArgumentPlaces})
    if (NamedMDNode *all = module.getNamedMetadata(name))
      all->eraseFromParent();
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      instruction.setMetadata(kMember, nullptr);
      instruction.setMetadata(kCopy, nullptr);
      instruction.setMetadata(kArguments, nullptr);
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

// Where in its record the bytes begin that are accessed of a bit-field: all that clang keeps it in, or, where the
// optimiser has made the access narrower, a part of as many bytes.
static int64_t accessed_from(const Leaf &leaf, uint64_t bytes) {
  const DIDerivedType &member = *leaf.path.back();
  const auto *begin = dyn_cast_or_null<ConstantInt>(member.getStorageOffsetInBits());
  const uint64_t in_storage =
      begin ? (member.getOffsetInBits() - begin->getZExtValue()) / 8 : uint64_t{0};
  const uint64_t storage = leaf.offset_bits / 8 - std::min(in_storage, leaf.offset_bits / 8);
  const uint64_t end = (leaf.offset_bits + leaf.size_bits + 7) / 8;
  const bool is_narrowed = storage + bytes < end;
  return (int64_t)(is_narrowed ? storage + in_storage / bytes * bytes : storage);
}

// Where the leaf is at the address, that is not said.
static std::optional<int64_t> record_behind(const MemberAccess &found, uint64_t bytes) {
  const Leaf &leaf = found.record->leaves[found.leaves.first];
  if (!(leaf.flags & ASSAY_LEAF_BIT_FIELD) || leaf.elements > 1 || leaf.path.empty() || !bytes)
    return std::nullopt;
  return -accessed_from(leaf, bytes);
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
  sources_ = {function.getSubprogram()};
  for (Instruction &instruction : instructions(function)) {
    if (const DILocation *where = instruction.getDebugLoc())
      sources_.insert(where->getScope()->getSubprogram());
    const Value *pointer = getLoadStorePointerOperand(&instruction);
    if (!pointer)
      continue;
    MemberAccess access = read(tag_at(instruction, isa<StoreInst>(instruction)));
    if (!access.record || access.leaves.first != access.leaves.last)
      continue; // of several, or of none
    const Leaf &leaf = access.record->leaves[access.leaves.first];
    if (leaf.elements > 1 || leaf.flags & (ASSAY_LEAF_ARRAY | ASSAY_LEAF_BIT_FIELD))
      continue;
    const TypeSize bits = layout_.getTypeStoreSizeInBits(getLoadStoreType(&instruction));
    if (!member_tag(instruction) && bits != TypeSize::getFixed(leaf.size_bits))
      continue; // of more than its place in the source says
    int64_t offset = 0;
    const Value *base = base_of(pointer, offset);
    bases_[base].push_back({access.record, offset - (int64_t)(leaf.offset_bits / 8), &instruction});
  }
}

const Value *MemberTags::base_of(const Value *pointer, int64_t &offset) const {
  APInt distance(64, 0);
  const Value *base = pointer->stripAndAccumulateConstantOffsets(layout_, distance, true);
  // A loop over objects loads the fields of several from where the first one has its own.
  if (auto *lane = dyn_cast<ExtractElementInst>(base))
    base = lane->getVectorOperand()->stripAndAccumulateConstantOffsets(layout_, distance, true);
  offset = distance.getSExtValue();
  return base;
}

int64_t MemberTags::begin_behind(const Value *base, const RecordLayout &record) const {
  auto known = bases_.find(base);
  return known != bases_.end() && known->second.front().record == &record
             ? known->second.front().offset
             : 0;
}

MemberTags::InRecord MemberTags::by_base(const Value *pointer) const {
  int64_t offset = 0;
  auto known = bases_.find(base_of(pointer, offset));
  if (known == bases_.end())
    return {};
  const RecordLayout *record = known->second.front().record;
  const int64_t at = offset - known->second.front().offset;
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
  const bool has_bytes = leaf.size_bits || leaf.flags & ASSAY_LEAF_ARRAY;
  const bool is_whole = has_bytes && leaf.size_bits % 8 == 0 && leaf.offset_bits % 8 == 0;
  if (member_tag(instruction) || tagged.leaves.first != tagged.leaves.last || !is_whole)
    return false;
  return vector_of(instruction) || access.bytes * 8 > leaf.size_bits;
}

// Whether all of an access to an array that its place in the source names can be to it.
bool MemberTags::is_in_array(const MemberAccess &tagged, const Access &access) {
  const Leaf &leaf = tagged.record->leaves[tagged.leaves.first];
  return leaf.flags & ASSAY_LEAF_ARRAY && leaf.elements == 1 &&
         (!leaf.size_bits || access.bytes * 8 <= leaf.size_bits);
}

// Of an access to more than the field that its place in the source names, which is one of those it
// was made of: mostly its address is computed from the record's; else that field is the first.
MemberTags::InRecord MemberTags::around(const MemberAccess &tagged, const Access &access) const {
  const RecordLayout &record = *tagged.record;
  const uint64_t field = record.leaves[tagged.leaves.first].offset_bits / 8;
  int64_t offset = 0;
  base_of(access.pointer, offset);
  const auto size = (int64_t)record.size;
  const uint64_t at = size ? (uint64_t)((offset % size + size) % size) : 0;
  const uint64_t reached = field >= at ? field : field + record.size; // in this object, or the next
  return {&record, reached < at + access.bytes ? at : field};
}

// Of a vector that was made of what copies were split into (split_copies.h).
MemberTags::InRecord MemberTags::by_copy(const Instruction &instruction, const Access &access) {
  const DILocation *where = vector_of(instruction) ? instruction.getDebugLoc().get() : nullptr;
  const MDNode *tag = where && where->getLine() && !member_tag(instruction)
                          ? copies_at_place_.lookup(place_of(*where, true))
                          : nullptr;
  if (!tag)
    return {};
  const CopyTag copy = copy_in(*tag);
  const MemberAccess side = read(access.writes ? copy.written : copy.read);
  return side.record ? around(side, access) : InRecord();
}

// Whether what lies behind the record may be members of a class that is derived from it, and not the next of an array.
bool MemberTags::may_be_derived(const RecordLayout &record, const Value *pointer) const {
  if (!inherited_.contains(record.type))
    return false;
  int64_t ignored = 0;
  auto *indexed = dyn_cast<GEPOperator>(base_of(pointer, ignored));
  return !indexed || !steps_by(*indexed, record.size, layout_);
}

// An access that the optimiser has made of several has no line; of which fields, its address says no more.
bool MemberTags::is_one_of_several(const Value *pointer) const {
  int64_t ignored = 0;
  auto is_in_record = [&](const Value *address) {
    return bases_.contains(base_of(address, ignored));
  };
  pointer = base_of(pointer, ignored);
  if (auto *gep = dyn_cast<GEPOperator>(pointer))
    return is_in_record(gep->getPointerOperand());
  if (auto *choice = dyn_cast<SelectInst>(pointer))
    return is_in_record(choice->getTrueValue()) || is_in_record(choice->getFalseValue());
  auto *phi = dyn_cast<PHINode>(pointer);
  return phi && any_of(phi->incoming_values(), is_in_record);
}

// The leaf of just these bytes, of which no other has any.
static std::optional<uint32_t> leaf_alone(const RecordLayout &record, uint64_t offset,
                                          uint64_t bytes) {
  const uint64_t begin = offset * 8, end = begin + bytes * 8;
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < record.leaves.size(); i++) {
    const Leaf &leaf = record.leaves[i];
    if (leaf.offset_bits >= end || leaf.offset_bits + leaf.size_bits <= begin)
      continue;
    if (found || leaf.offset_bits != begin || leaf.size_bits != bytes * 8)
      return std::nullopt;
    found = i;
  }
  return found;
}

bool MemberTags::is_accessed_in(const DISubprogram *function, const RecordLayout &record,
                                uint32_t leaf, bool writes) const {
  return accessed_.contains({function, {&record, (uint64_t)leaf << 1 | writes}});
}

// That there is an object of the record, an access says on each way to this one. Code that takes an object for one of
// several records by what it finds in it has other members there: so it must be one that the source accesses in the
// function, and the only one.
MDNode *MemberTags::tag_behind(const Instruction &access, const Value *base, int64_t distance,
                               const DominatorTree &dominators) const {
  int64_t begin = 0;
  const auto known = bases_.find(base_of(base, begin));
  if (known == bases_.end())
    return nullptr;
  const uint64_t bytes = layout_.getTypeStoreSize(getLoadStoreType(&access)).getKnownMinValue();
  const DILocation *where = access.getDebugLoc();
  const DISubprogram *function =
      where ? where->getScope()->getSubprogram() : access.getFunction()->getSubprogram();
  const Base *found = nullptr;
  uint32_t found_leaf = 0;
  for (const Base &each : known->second) {
    const int64_t at = begin + distance - each.offset;
    const bool is_found = found && found->record == each.record && found->offset == each.offset;
    if (is_found || at < 0 || !dominators.dominates(each.access, &access))
      continue;
    const auto leaf = leaf_alone(*each.record, (uint64_t)at, bytes);
    if (!leaf || !is_accessed_in(function, *each.record, *leaf, isa<StoreInst>(access)))
      continue;
    if (found)
      return nullptr;
    found = &each;
    found_leaf = *leaf;
  }
  return found ? member_node(*found->record->type, found_leaf, found_leaf) : nullptr;
}

// A copy of a record that is not larger than a register is a load and a store in the end.
MemberAccess MemberTags::half_of_copy(const Instruction &instruction, const Access &access) {
  const DILocation *where = instruction.getDebugLoc();
  const MDNode *tag = instruction.getMetadata(kCopy);
  if (!tag && where && where->getLine() && !member_tag(instruction))
    tag = copies_at_place_.lookup(place_of(*where, true));
  if (!tag)
    return {};
  const CopyTag copy = copy_in(*tag);
  if (access.bytes != (access.writes ? copy.written_bytes : copy.read_bytes))
    return {};
  MemberAccess half = read(access.writes ? copy.written : copy.read);
  half.is_copy = copy.is_transfer;
  return half;
}

// The tags of a call's arguments, or of those of the call that the access was made of; null: it has none.
const MDNode *MemberTags::arguments_of(const Instruction &instruction) const {
  if (const MDNode *tags = instruction.getMetadata(kArguments))
    return tags;
  const DILocation *where = instruction.getDebugLoc();
  return where && where->getLine() && !member_tag(instruction)
             ? arguments_at_place_.lookup(place_of(*where, true))
             : nullptr;
}

// A part of a member that memcpy or memset copies or sets, if it is not larger than a register.
MemberAccess MemberTags::part_of_member(const Instruction &instruction, const Access &access) {
  const MDNode *tags = arguments_of(instruction);
  constexpr unsigned kArgumentsOfIntrinsics = 4; // destination, source or byte, length, volatile
  if (!tags || tags->getNumOperands() != kArgumentsOfIntrinsics)
    return {};
  return read(node_in(*tags, access.writes ? 0 : 1));
}

// Bit-fields share their storage, and what the optimiser moves out of a loop or joins is an access
// to all of it: it is one to those that the source accesses in the function. None, where it only
// reads what a write leaves as it was.
SmallVector<LeafRange, 1> MemberTags::leaves_accessed(const RecordLayout &record, LeafRange leaves,
                                                      bool writes) const {
  const bool shares_storage =
      leaves.first < leaves.last &&
      all_of(
          ArrayRef(record.leaves).slice(leaves.first, leaves.last - leaves.first + 1),
          [](const Leaf &leaf) { return leaf.flags & ASSAY_LEAF_BIT_FIELD; });
  if (!shares_storage || any_of(sources_, [&](auto *each) { return unclear_.contains(each); }))
    return {leaves};
  SmallVector<LeafRange, 1> found;
  for (uint32_t i = leaves.first; i <= leaves.last; i++)
    if (any_of(sources_, [&](auto *each) { return is_accessed_in(each, record, i, writes); })) {
      if (!found.empty() && found.back().last + 1 == i)
        found.back().last = i;
      else
        found.push_back({i, i});
    }
  if (found.empty() && writes)
    return {leaves};
  return found;
}

// None: it lies between members.
SmallVector<MemberAccess, 1> MemberTags::members_at(const Instruction &instruction,
                                                    const Access &access,
                                                    const InRecord &place) const {
  SmallVector<MemberAccess, 1> all;
  const bool is_alone = may_be_derived(*place.record, access.pointer);
  for (const JoinedMembers &each :
       joined_members(instruction, *place.record, place.offset, access.bytes)) {
    const bool is_behind = each.from + (int64_t)place.offset > 0;
    if (is_alone && is_behind)
      all.push_back({nullptr, {}, true, each.accesses, std::nullopt, false});
    else
      for (LeafRange leaves : leaves_accessed(*place.record, each.leaves, access.writes))
        all.push_back({place.record, leaves, false, each.accesses, each.from, false});
  }
  return all;
}

SmallVector<MemberAccess, 1> MemberTags::find(Instruction &instruction, const Access &access) {
  const MDNode *tag = tag_at(instruction, access.writes);
  if (!tag || !tag->getNumOperands()) {
    if (MemberAccess half = half_of_copy(instruction, access); half.record)
      return {half};
    if (MemberAccess part = part_of_member(instruction, access); part.record)
      return {part};
  }
  if (tag && !tag->getNumOperands())
    return {};
  InRecord place;
  if (MemberAccess found = read(tag); found.is_lost) {
    return {found};
  } else if (found.record) {
    if (found.leaves.first > found.leaves.last)
      return {};
    if (!is_joined(instruction, access, found)) {
      found.from = record_behind(found, access.bytes);
      return {found};
    }
    place = by_base(access.pointer);
    if (place.record != found.record) {
      if (is_in_array(found, access)) {
        found.times = lanes_used(instruction);
        return {found};
      }
      place = around(found, access);
    }
  }
  if (!place.record)
    place = by_base(access.pointer);
  if (!place.record)
    place = by_copy(instruction, access);
  if (!place.record)
    place = by_alias_tag(instruction);
  if (place.record)
    return members_at(instruction, access, place);
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

// The lanes of a gather or scatter are to one field of several objects; those that lie side by side
// may be to several fields, unless these are elements of an array.
SmallVector<MemberAccess, 1> MemberTags::find(Instruction &instruction,
                                              const MaskedAccess &access) {
  // What users write as x86's own instructions names no field.
  if (Intrinsic::isTargetIntrinsic(cast<IntrinsicInst>(instruction).getIntrinsicID()))
    return {};
  const MDNode *tag = tag_at(instruction, access.writes);
  if (tag && !tag->getNumOperands())
    return {};
  MemberAccess found = read(tag);
  if (!found.record && !found.is_lost) {
    InRecord place = by_base(access.pointer);
    if (!place.record)
      place = by_alias_tag(instruction);
    if (!place.record)
      return {};
    const auto leaves = RecordLayouts::leaves_in(*place.record, place.offset, access.element_bytes);
    if (!leaves)
      return {};
    found = {place.record, *leaves, false, 1, std::nullopt, false};
  }
  if (found.is_lost || access.pointer->getType()->isVectorTy())
    return {found};
  const Leaf &leaf = found.record->leaves[found.leaves.first];
  const bool is_array = leaf.elements > 1 || leaf.flags & ASSAY_LEAF_ARRAY;
  MemberAccess lost;
  lost.is_lost = true;
  return {is_array || access.lanes == 1 ? found : lost};
}

MemberCopy MemberTags::find_copy(const AnyMemIntrinsic &call) {
  const MDNode *tag = call.getMetadata(kCopy);
  if (!tag)
    return copy_of_several(call);
  return read_copy(*tag);
}

MemberCopy MemberTags::read_copy(const MDNode &tag) {
  const CopyTag copy = copy_in(tag);
  return {read(copy.written), read(copy.read), copy.written_bytes, copy.read_bytes};
}

MemberAccess MemberTags::find_argument(const CallBase &call, const Value *pointer) {
  const MDNode *tags = arguments_of(call); // by the place, where memcmp has become bcmp
  if (!tags)
    return {};
  for (unsigned i = 0; i < std::min(tags->getNumOperands(), call.arg_size()); i++)
    if (call.getArgOperand(i)->stripPointerCasts() == pointer->stripPointerCasts())
      return read(node_in(*tags, i));
  return {};
}

// A loop that sets or copies one record after another is mostly one call; it has the place in the
// source of what was in the loop.
MemberCopy MemberTags::copy_of_several(const AnyMemIntrinsic &call) {
  const DILocation *where = call.getDebugLoc();
  if (!where || !where->getLine() || isa<AllocaInst>(getUnderlyingObject(call.getDest())))
    return {};
  MemberCopy copy;
  if (const MDNode *tag = copies_at_place_.lookup(place_of(*where, true)))
    copy = read_copy(*tag);
  else if (const MDNode *stored = isa<AnyMemSetInst>(call) ? tag_at(call, true) : nullptr) {
    copy.written = read(stored);
    if (!copy.written.record)
      return {};
    copy.written.leaves = {0, (uint32_t)copy.written.record->leaves.size() - 1};
    copy.written_bytes = copy.written.record->size;
  }
  auto *length = dyn_cast<ConstantInt>(call.getLength());
  auto is_of_part = [&](uint64_t bytes) {
    return !bytes || (length && (length->getZExtValue() < bytes || length->getZExtValue() % bytes));
  };
  if (is_of_part(copy.written_bytes))
    copy.written = {};
  if (is_of_part(copy.read_bytes))
    copy.read = {};
  return copy;
}

} // namespace assay::compiler
