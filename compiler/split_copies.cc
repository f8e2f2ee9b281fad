// SROA keeps no metadata that it does not know, but what it makes of a copy has the copy's place in
// the source, and an address that is computed from the copy's. So each copy gets a place that is its
// own before SROA runs, by which its accesses are known afterwards; how far these lie behind the
// copy's address says which members they are to.
//
// Refused: to split copies ourselves at the start, which leaves other code than the program has
// without us; to conclude from the address alone at the end of the pipeline, where a function that
// was inlined gives any distance.

#include "compiler/split_copies.h"

#include <memory>
#include <optional>

#include "compiler/member_tag_nodes.h"
#include "compiler/record_layout.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/ValueHandle.h"

using namespace llvm;

namespace assay::compiler {
namespace {

// An address as a pointer and a constant distance, in bytes.
struct Address {
  WeakTrackingVH base; // null: it is gone
  int64_t distance = 0;
};

Address address_of(Value *pointer, const DataLayout &layout) {
  APInt distance(64, 0);
  Value *base = pointer->stripAndAccumulateConstantOffsets(layout, distance, true);
  return {base, distance.getSExtValue()};
}

// How far a pointer points behind an address.
std::optional<int64_t> distance_behind(const Address &address, Value *pointer,
                                       const DataLayout &layout) {
  if (!address.base)
    return std::nullopt;
  const Address begin = address_of(address.base, layout), end = address_of(pointer, layout);
  if (begin.base != end.base)
    return std::nullopt;
  return end.distance - begin.distance - address.distance;
}

using Bytes = std::pair<int64_t, uint64_t>; // from there, so many

// What the accesses to a variable are to; null: to several members.
using MembersAt = SmallDenseMap<Bytes, MDNode *, 4>;

// Those of a variable, and where in it a copy begins.
struct Variable {
  const MembersAt *members = nullptr;
  int64_t begin = 0;
};

struct Copy {
  MDNode *tag = nullptr;
  SmallVector<Variable, 2> variables; // without a tag: what is copied
  Address written, read;
  DebugLoc place;
  std::optional<uint64_t> length; // bytes
};

class SplitCopies {
public:
  void begin(Function &function) {
    copies_.clear();
    variables_.reset();
    if (!function.getSubprogram())
      return;
    layout_ = &function.getDataLayout();
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<AnyMemTransferInst>(&instruction);
      if (!call)
        continue;
      Copy copy;
      copy.tag = call->getMetadata(kCopy);
      copy.written = address_of(call->getRawDest(), *layout_);
      copy.read = address_of(call->getRawSource(), *layout_);
      copy.place = call->getDebugLoc();
      if (auto *constant = dyn_cast<ConstantInt>(call->getLength()))
        copy.length = constant->getZExtValue();
      if (!copy.tag) {
        if (!variables_)
          variables_ = members_of_variables(function);
        for (const Address *side : {&copy.written, &copy.read})
          if (auto known = variables_->find(side->base); known != variables_->end())
            copy.variables.push_back({&known->second, side->distance});
        if (copy.variables.empty())
          continue;
      }
      const DILocation *own = own_place(copy.place, function);
      call->setDebugLoc(own);
      copies_.insert({own, std::move(copy)});
    }
  }

  void end(Function &function) {
    if (copies_.empty())
      return;
    for (Instruction &instruction : instructions(function)) {
      auto known = copies_.find(instruction.getDebugLoc().get());
      if (known == copies_.end())
        continue;
      const Copy &copy = known->second;
      instruction.setDebugLoc(copy.place);
      if (auto *call = dyn_cast<AnyMemTransferInst>(&instruction))
        tag_part(*call, copy);
      else if (getLoadStorePointerOperand(&instruction) && !instruction.getMetadata(kMember))
        tag_access(instruction, copy);
    }
    copies_.clear();
  }

private:
  static const DILocation *own_place(const DebugLoc &place, const Function &function) {
    LLVMContext &context = function.getContext();
    return place ? DILocation::getDistinct(context, place.getLine(), place.getCol(),
                                           place.getScope(), place.getInlinedAt())
                 : DILocation::getDistinct(context, 0, 0, function.getSubprogram());
  }

  DenseMap<const Value *, MembersAt> members_of_variables(Function &function) const {
    DenseMap<const Value *, MembersAt> variables;
    for (Instruction &instruction : instructions(function)) {
      Value *pointer = getLoadStorePointerOperand(&instruction);
      MDNode *tag = pointer ? instruction.getMetadata(kMember) : nullptr;
      if (!tag || tag->getNumOperands() == 0)
        continue;
      const Address at = address_of(pointer, *layout_);
      if (!isa<AllocaInst>(at.base))
        continue;
      auto [known, is_new] = variables[at.base].insert({{at.distance, bytes_of(instruction)}, tag});
      if (!is_new && known->second != tag)
        known->second = nullptr;
    }
    return variables;
  }

  uint64_t bytes_of(const Instruction &access) const {
    return layout_->getTypeStoreSize(getLoadStoreType(&access)).getKnownMinValue();
  }

  void tag_access(Instruction &access, const Copy &copy) {
    const uint64_t bytes = bytes_of(access);
    if (copy.tag && copy.length && bytes == *copy.length) {
      access.setMetadata(kCopy, copy.tag); // as a whole
      return;
    }
    const bool writes = isa<StoreInst>(access);
    const CopyTag sides = copy.tag ? copy_in(*copy.tag) : CopyTag();
    const MDNode *side = writes ? sides.written : sides.read;
    if (copy.tag && !side)
      return;
    MDNode *tag = nullptr;
    if (std::optional<int64_t> behind = distance_behind(
            writes ? copy.written : copy.read, getLoadStorePointerOperand(&access), *layout_))
      tag = side ? part(*side, writes ? sides.written_bytes : sides.read_bytes, *behind, bytes)
                 : of_variables(copy, *behind, bytes);
    access.setMetadata(kMember, tag ? tag : undescribed_node(access.getContext()));
  }

  static MDNode *of_variables(const Copy &copy, int64_t behind, uint64_t bytes) {
    for (const Variable &variable : copy.variables)
      if (auto known = variable.members->find({variable.begin + behind, bytes});
          known != variable.members->end())
        return known->second;
    return nullptr;
  }

  // A copy that is left of one. What the optimiser has made is counted as the accesses to the variable.
  void tag_part(AnyMemTransferInst &call, const Copy &copy) {
    if (!copy.tag || call.getMetadata(kCopy))
      return;
    auto *length = dyn_cast<ConstantInt>(call.getLength());
    if (!length || !copy.length)
      return;
    const uint64_t bytes = length->getZExtValue();
    CopyTag sides = copy_in(*copy.tag);
    auto take_part = [&](MDNode *&side, uint64_t &side_bytes, const Address &of, Value *pointer) {
      const auto behind = side ? distance_behind(of, pointer, *layout_) : std::nullopt;
      side = behind ? part(*side, side_bytes, *behind, bytes) : nullptr;
      if (side && !side->getNumOperands()) // between members
        side = nullptr;
      side_bytes = side ? bytes : 0;
    };
    if (bytes != *copy.length) {
      take_part(sides.written, sides.written_bytes, copy.written, call.getRawDest());
      take_part(sides.read, sides.read_bytes, copy.read, call.getRawSource());
    }
    if (sides.written || sides.read)
      call.setMetadata(kCopy, copy_node(call.getContext(), sides));
  }

  // Of so many bytes behind the begin of what a tag is of; null: of more than that.
  MDNode *part(const MDNode &whole, uint64_t whole_bytes, int64_t behind, uint64_t bytes) {
    if (is_undescribed(whole) || behind < 0 || !whole_bytes ||
        (uint64_t)behind % whole_bytes + bytes > whole_bytes)
      return nullptr;
    auto *type = cast<DIType>(whole.getOperand(0));
    const RecordLayout *record = layouts_.find(type);
    if (!record || number_in(whole, 1) >= record->leaves.size())
      return nullptr;
    const uint64_t first = record->leaves[number_in(whole, 1)].offset_bits / 8;
    const std::optional<LeafRange> leaves =
        RecordLayouts::leaves_in(*record, first + (uint64_t)behind % whole_bytes, bytes);
    LLVMContext &context = whole.getContext();
    if (!leaves) // between members
      return MDNode::get(context, {});
    return MDNode::get(
        context, {type, number_node(context, leaves->first), number_node(context, leaves->last)});
  }

  RecordLayouts layouts_;
  // Of the function that SROA is at.
  const DataLayout *layout_ = nullptr;
  std::optional<DenseMap<const Value *, MembersAt>> variables_; // most functions need none
  DenseMap<const DILocation *, Copy> copies_;                   // by the places that are theirs
};

Function *function_in(const Any &code) {
  const auto *function = any_cast<const Function *>(&code);
  return function ? const_cast<Function *>(*function) : nullptr;
}

bool is_sroa(StringRef pass) {
  return pass == "SROAPass";
}

} // namespace

void follow_split_copies(PassInstrumentationCallbacks &passes) {
  auto copies = std::make_shared<SplitCopies>();
  passes.registerBeforeNonSkippedPassCallback([copies](StringRef pass, const Any &code) {
    if (Function *function = is_sroa(pass) ? function_in(code) : nullptr)
      copies->begin(*function);
  });
  passes.registerAfterPassCallback(
      [copies](StringRef pass, const Any &code, const PreservedAnalyses &) {
        if (Function *function = is_sroa(pass) ? function_in(code) : nullptr)
          copies->end(*function);
      });
}

} // namespace assay::compiler
