// Debug information is a graph of members and types; accesses need a list of places. Each record
// becomes the list of its leaves, which are made once and asked for by the members that lead there,
// or by bytes.
//
// An array of records is the leaves of one element: an access by a variable index says which
// member, not which element. Members of virtual base classes have no fixed place and are not
// listed; accesses to them belong to the base class itself.

#include "compiler/record_layout.h"

#include "abi/fields.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace assay::compiler {
namespace {

const DIType *strip(const DIType *type) {
  while (auto *derived = dyn_cast_or_null<DIDerivedType>(type)) {
    switch (derived->getTag()) {
    case dwarf::DW_TAG_typedef:
    case dwarf::DW_TAG_const_type:
    case dwarf::DW_TAG_volatile_type:
    case dwarf::DW_TAG_restrict_type:
    case dwarf::DW_TAG_atomic_type: type = derived->getBaseType(); continue;
    default: return type;
    }
  }
  return type;
}

bool is_record_tag(unsigned tag) {
  return tag == dwarf::DW_TAG_structure_type || tag == dwarf::DW_TAG_class_type ||
         tag == dwarf::DW_TAG_union_type;
}

std::string name_with_scope(const DIType &type) {
  std::string name = type.getName().str();
  for (const DIScope *scope = type.getScope(); scope; scope = scope->getScope()) {
    if (isa<DIFile>(scope) || isa<DISubprogram>(scope) || isa<DICompileUnit>(scope))
      break;
    if (!scope->getName().empty())
      name = (scope->getName() + "::" + name).str();
  }
  return name;
}

std::string type_name(const DIType *type) {
  if (!type)
    return "void";
  if (auto *derived = dyn_cast<DIDerivedType>(type)) {
    std::string inner = type_name(derived->getBaseType());
    switch (derived->getTag()) {
    case dwarf::DW_TAG_pointer_type: return inner + " *";
    case dwarf::DW_TAG_reference_type: return inner + " &";
    case dwarf::DW_TAG_rvalue_reference_type: return inner + " &&";
    case dwarf::DW_TAG_const_type: return "const " + inner;
    case dwarf::DW_TAG_volatile_type: return "volatile " + inner;
    case dwarf::DW_TAG_atomic_type: return "_Atomic " + inner;
    case dwarf::DW_TAG_restrict_type: return inner;
    case dwarf::DW_TAG_typedef: return derived->getName().str();
    default: return inner;
    }
  }
  if (isa<DISubroutineType>(type))
    return "function";
  if (auto *composite = dyn_cast<DICompositeType>(type)) {
    if (composite->getTag() == dwarf::DW_TAG_array_type)
      return type_name(composite->getBaseType());
    if (composite->getName().empty())
      return composite->getTag() == dwarf::DW_TAG_union_type ? "union" : "struct";
    return name_with_scope(*composite);
  }
  return type->getName().str();
}

struct Array {
  const DIType *element;
  uint64_t count; // 0: a flexible one
};

std::optional<Array> array_of(const DIType *type) {
  auto *array = dyn_cast_or_null<DICompositeType>(strip(type));
  if (!array || array->getTag() != dwarf::DW_TAG_array_type || array->isVector())
    return std::nullopt;
  uint64_t count = 1;
  for (const DINode *dimension : array->getElements())
    if (auto *range = dyn_cast<DISubrange>(dimension)) {
      auto *size = dyn_cast_if_present<ConstantInt *>(range->getCount());
      count *= size && size->getSExtValue() > 0 ? size->getZExtValue() : 0;
    }
  return Array{array->getBaseType(), count};
}

uint64_t size_bits(const DIType *type) {
  const DIType *plain = strip(type);
  return plain ? plain->getSizeInBits() : 0;
}

// As the ABI aligns the type, unless the program says otherwise.
uint64_t alignment_of(const DIType *type) {
  for (;;) {
    if (!type)
      return 1;
    if (type->getAlignInBits())
      return type->getAlignInBits() / 8;
    if (std::optional<Array> array = array_of(type)) {
      type = array->element;
      continue;
    }
    type = strip(type);
    if (const DICompositeType *record = record_of(type)) {
      uint64_t most = std::max<uint64_t>(1, record->getAlignInBits() / 8);
      for (const DINode *node : record->getElements())
        if (auto *member = dyn_cast_or_null<DIDerivedType>(node);
            member && !member->isStaticMember() &&
            is_contained({dwarf::DW_TAG_member, dwarf::DW_TAG_inheritance}, member->getTag()))
          most = std::max(
              {most, (uint64_t)member->getAlignInBits() / 8, alignment_of(member->getBaseType())});
      while (record->getSizeInBits() / 8 % most) // packed
        most /= 2;
      return most;
    }
    uint64_t bytes = type ? type->getSizeInBits() / 8 : 1;
    return bytes && isPowerOf2_64(bytes) ? std::min<uint64_t>(bytes, 16) : 8;
  }
}

// Itself, or by a base class.
bool has_virtual_base(const DICompositeType &record) {
  for (const DINode *node : record.getElements())
    if (auto *base = dyn_cast_or_null<DIDerivedType>(node);
        base && base->getTag() == dwarf::DW_TAG_inheritance)
      if (const DICompositeType *of = record_of(base->getBaseType());
          base->isVirtual() || (of && has_virtual_base(*of)))
        return true;
  return false;
}

class Flattener {
public:
  explicit Flattener(RecordLayout &layout) : layout_(layout) {}

  struct Around {
    uint64_t offset = 0; // bits
    std::string name;    // with what separates it from the member's
    uint32_t flags = 0;
    uint64_t elements = 1, stride = 0;
    uint64_t alignment = 1; // of the members that it is in, bytes
  };

  // False if there are too many.
  bool add(const DICompositeType &record, const Around &around) {
    const bool is_union = record.getTag() == dwarf::DW_TAG_union_type;
    const size_t first = layout_.leaves.size();
    for (const DINode *node : record.getElements()) {
      auto *member = dyn_cast_or_null<DIDerivedType>(node);
      if (!member || member->isStaticMember() || member->isVirtual())
        continue;
      Around here = around;
      if (is_union)
        here.flags |= ASSAY_LEAF_UNION;
      here.offset += member->getOffsetInBits();
      bool fits = true;
      if (member->getTag() ==
          dwarf::DW_TAG_inheritance) { // is no step: code reaches the members at once
        const DICompositeType *base = record_of(member->getBaseType());
        here.flags |= ASSAY_LEAF_BASE;
        here.name += type_name(member->getBaseType()) + "::";
        fits = !base || add(*base, here);
      } else if (member->getTag() == dwarf::DW_TAG_member) {
        path_.push_back(member);
        fits = add_member(*member, here);
        path_.pop_back();
      }
      if (!fits)
        return false;
    }
    // What is no hole, though its members belong to others. An object of a base class has them elsewhere.
    if (!(around.flags & ASSAY_LEAF_BASE) && has_virtual_base(record))
      add_virtual_bases(record, around, first);
    return true;
  }

private:
  void add_virtual_bases(const DICompositeType &record, const Around &around, size_t first) {
    Leaf leaf;
    leaf.offset_bits = around.offset;
    for (size_t i = first; i < layout_.leaves.size(); i++)
      leaf.offset_bits =
          std::max(leaf.offset_bits, layout_.leaves[i].offset_bits + layout_.leaves[i].size_bits);
    leaf.alignment = alignment_of(&record);
    leaf.offset_bits = alignTo(leaf.offset_bits, 8 * leaf.alignment);
    const uint64_t end = around.offset + record.getSizeInBits();
    if (end <= leaf.offset_bits)
      return;
    leaf.size_bits = end - leaf.offset_bits;
    leaf.flags = around.flags | ASSAY_LEAF_BASE | ASSAY_LEAF_HIDDEN;
    leaf.elements = around.elements;
    leaf.stride = around.stride;
    leaf.name = around.name + "(virtual bases)";
    layout_.leaves.push_back(std::move(leaf));
  }

  static uint64_t alignment_at(uint64_t offset_bits, const DIDerivedType &member) {
    const uint64_t bytes =
        std::max<uint64_t>(alignment_of(member.getBaseType()), member.getAlignInBits() / 8);
    return offset_bits / 8 % bytes ? 1 : bytes; // packed
  }

  bool add_member(const DIDerivedType &member, Around here) {
    const DIType *type = member.getBaseType();
    here.name += member.getName();
    Around element = here;
    std::optional<Array> array = array_of(type);
    if (array) {
      element.name += "[]";
      element.elements *= std::max<uint64_t>(array->count, 1);
      element.stride = size_bits(array->element) / 8;
    }
    const DIType *of = array ? array->element : type;
    while (auto inner = array_of(of)) // an array behind a typedef
      of = inner->element;
    if (const DICompositeType *nested = record_of(of);
        nested && !nested->getElements().empty() && !member.isBitField()) {
      if (!member.getName().empty())
        element.name += ".";
      element.alignment = std::max(here.alignment, alignment_at(here.offset, member));
      return add(*nested, element);
    }
    Leaf leaf;
    leaf.offset_bits = here.offset;
    leaf.size_bits = member.getSizeInBits();
    leaf.flags = here.flags;
    leaf.elements = here.elements;
    leaf.stride = here.stride;
    leaf.name = here.name;
    leaf.type = type_name(type);
    leaf.path = path_;
    leaf.alignment = std::max(here.alignment, alignment_at(here.offset, member));
    if (array) {
      leaf.flags |= ASSAY_LEAF_ARRAY;
      leaf.type += "[" + (array->count ? std::to_string(array->count) : std::string()) + "]";
    }
    if (member.isBitField())
      leaf.flags |= ASSAY_LEAF_BIT_FIELD;
    if (member.isArtificial())
      leaf.flags |= ASSAY_LEAF_HIDDEN;
    if (auto *pointer = dyn_cast_or_null<DIDerivedType>(strip(type));
        pointer && pointer->getTag() != dwarf::DW_TAG_ptr_to_member_type)
      leaf.flags |= ASSAY_LEAF_POINTER;
    if (!leaf.size_bits && !array)
      return true; // of no bytes
    layout_.leaves.push_back(std::move(leaf));
    return layout_.leaves.size() <= ASSAY_MAX_LEAVES;
  }

  RecordLayout &layout_;
  SmallVector<const DIDerivedType *, 4> path_;
};

// `ASSAY_LEAF_INSEPARABLE` of the members that are.
void mark_inseparable(const DICompositeType &record, RecordLayout &layout) {
  DenseMap<unsigned, unsigned> members_on;
  for (const DINode *node : record.getElements())
    if (auto *member = dyn_cast_or_null<DIDerivedType>(node);
        member && member->getTag() == dwarf::DW_TAG_member)
      members_on[member->getLine()]++;
  for (Leaf &leaf : layout.leaves)
    if (!(leaf.flags & (ASSAY_LEAF_BASE | ASSAY_LEAF_HIDDEN)) && !leaf.path.empty() &&
        (record.getName().empty() || members_on[leaf.path.front()->getLine()] > 1))
      leaf.flags |= ASSAY_LEAF_INSEPARABLE;
}

uint64_t hash_of(const RecordLayout &layout) {
  std::string key = layout.name + "\n" + std::to_string(layout.size);
  for (const Leaf &leaf : layout.leaves)
    key += "\n" + std::to_string(leaf.offset_bits) + " " + std::to_string(leaf.size_bits) + " " +
           leaf.name + " " + leaf.type;
  return xxh3_64bits(key);
}

// Where an offset in an array of records, in bytes, lies if the first element is taken for the one whose field is the
// next to end behind it, in bits; it may begin before that.
int64_t in_first_element(const Leaf &leaf, uint64_t offset) {
  if (leaf.flags & ASSAY_LEAF_ARRAY || !leaf.stride)
    return (int64_t)(offset * 8);
  const uint64_t end = (leaf.offset_bits + leaf.size_bits + 7) / 8;
  const uint64_t past = offset < end ? 0 : (offset - end) / leaf.stride + 1;
  return ((int64_t)offset - (int64_t)(std::min(past, leaf.elements - 1) * leaf.stride)) * 8;
}

bool is_prefix(ArrayRef<const DIDerivedType *> path, const Leaf &leaf) {
  return path.size() <= leaf.path.size() &&
         equal(path, ArrayRef(leaf.path).take_front(path.size()));
}

} // namespace

bool is_array(const DIType *type) {
  type = strip(type);
  return type && type->getTag() == dwarf::DW_TAG_array_type;
}

const DIType *element_of(const DIType *type) {
  while (is_array(type))
    type = cast<DICompositeType>(strip(type))->getBaseType();
  return strip(type);
}

const DICompositeType *record_of(const DIType *type) {
  auto *composite = dyn_cast_or_null<DICompositeType>(strip(type));
  return composite && is_record_tag(composite->getTag()) ? composite : nullptr;
}

const DIDerivedType *member_of(const DICompositeType &record, unsigned number) {
  for (const DINode *node : record.getElements()) {
    auto *member = dyn_cast_or_null<DIDerivedType>(node);
    if (!member || member->getTag() != dwarf::DW_TAG_member || member->isStaticMember() ||
        member->isArtificial())
      continue;
    if (number-- == 0)
      return member;
  }
  return nullptr;
}

const RecordLayout *RecordLayouts::find(const DIType *named) {
  const DICompositeType *record = record_of(named);
  if (!record)
    return nullptr;
  auto [known, is_new] = known_.try_emplace(record);
  if (!is_new)
    return known->second.get();
  if (record->isForwardDecl() || record->getElements().empty())
    return nullptr;
  auto layout = std::make_unique<RecordLayout>();
  layout->type = record;
  layout->size = record->getSizeInBits() / 8;
  layout->line = record->getLine();
  if (const DIFile *file = record->getFile())
    layout->file = file->getFilename().str();
  layout->name = name_with_scope(*record);
  if (record->getName().empty()) {
    auto *alias = dyn_cast<DIDerivedType>(named);
    layout->name = alias && alias->getTag() == dwarf::DW_TAG_typedef
                       ? alias->getName().str()
                       : "(unnamed at " + layout->file + ":" + std::to_string(layout->line) + ")";
  }
  if (!Flattener(*layout).add(*record, {}) || layout->leaves.empty())
    return nullptr;
  mark_inseparable(*record, *layout);
  layout->hash = hash_of(*layout);
  return (known_[record] = std::move(layout)).get();
}

std::optional<LeafRange> RecordLayouts::leaves_at(const RecordLayout &layout,
                                                  ArrayRef<const DIDerivedType *> path) {
  std::optional<LeafRange> range;
  for (uint32_t i = 0; i < layout.leaves.size(); i++) {
    if (!is_prefix(path, layout.leaves[i]))
      continue;
    if (!range)
      range = LeafRange{i, i};
    range->last = i;
  }
  return range;
}

std::optional<LeafRange> RecordLayouts::leaves_in(const RecordLayout &layout, uint64_t offset,
                                                  uint64_t bytes) {
  std::optional<LeafRange> range;
  bool is_exact = false; // the leaf has just these bytes: it is meant, and none that overlaps it
  for (uint32_t i = 0; i < layout.leaves.size(); i++) {
    const Leaf &leaf = layout.leaves[i];
    const int64_t begin =
        leaf.elements > 1 ? in_first_element(leaf, offset) : (int64_t)(offset * 8);
    const int64_t end = begin + (int64_t)(bytes * 8);
    const bool is_flexible = !leaf.size_bits && leaf.flags & ASSAY_LEAF_ARRAY;
    const auto leaf_begin = (int64_t)leaf.offset_bits;
    const int64_t leaf_end = is_flexible ? INT64_MAX : leaf_begin + (int64_t)leaf.size_bits;
    if (begin >= leaf_end || end <= leaf_begin)
      continue;
    const bool exact = begin == leaf_begin && end == leaf_end;
    if (!range || (exact && !is_exact))
      range = LeafRange{i, i};
    else if (range->last + 1 == i && exact == is_exact)
      range->last = i;
    is_exact |= exact;
  }
  return range;
}

} // namespace assay::compiler
