// The register allocator of -O0 works block by block: a value that leaves its block goes through a
// place in the frame of its own. Here these places are given out as a linear scan gives out
// registers.
//
// A value's range goes from its definition to its last use, in the order of the blocks. It is taken
// only where that order is the order of execution: each block of the range but the first is reached
// from earlier ones of the range alone. So nobody comes to a use but through the definition and
// what lies between, and a range elsewhere cannot overwrite the place.
//
// Refused: to mark lines without a branch, by a call for each access. Frames would not grow at all,
// but unoptimised code be several times slower.

#include "compiler/frame_slots.h"

#include "compiler/counting.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr uint64_t kSlotBytes = 8;

class FrameSlots {
public:
  explicit FrameSlots(Function &function)
      : function_(function), layout_(function.getDataLayout()) {}

  void run() {
    number();
    std::vector<Range> ranges;
    for (BasicBlock &block : function_)
      for (Instruction &value : block)
        if (std::optional<Range> range = range_of(value))
          ranges.push_back(*range);
    for (const Range &range : ranges) // their order is that of the definitions
      put(range);
  }

private:
  struct Range {
    Instruction *value;
    uint32_t first, last; // positions of instructions
  };
  struct Slot {
    AllocaInst *place;
    uint32_t free_from;
  };

  void number() {
    uint32_t block_number = 0, position = 0;
    for (BasicBlock &block : function_) {
      blocks_[&block] = block_number++;
      in_order_.push_back(&block);
      for (Instruction &instruction : block)
        positions_[&instruction] = position++;
    }
  }

  // Where a use needs the value: a phi at the end of the block that it comes from.
  static Instruction *needed_at(const Use &use) {
    auto *user = cast<Instruction>(use.getUser());
    auto *phi = dyn_cast<PHINode>(user);
    return phi ? phi->getIncomingBlock(use)->getTerminator() : user;
  }

  bool fits(const Instruction &value) const {
    Type *type = value.getType();
    return (type->isIntegerTy() || type->isPointerTy() || type->isFloatingPointTy()) &&
           layout_.getTypeStoreSize(type) <= kSlotBytes;
  }

  std::optional<Range> range_of(Instruction &value) {
    if (isa<AllocaInst>(value) || value.isTerminator() || !fits(value))
      return std::nullopt;
    const BasicBlock *block = value.getParent();
    Range range = {&value, positions_[&value], 0};
    uint32_t last_block = blocks_[block];
    bool leaves = false;
    for (const Use &use : value.uses()) {
      const Instruction *needed = needed_at(use);
      leaves |= needed->getParent() != block;
      range.last = std::max(range.last, positions_[needed]);
      last_block = std::max(last_block, blocks_[needed->getParent()]);
      if (positions_[needed] < range.first)
        return std::nullopt;
    }
    return leaves && is_straight(blocks_[block], last_block) ? std::optional(range) : std::nullopt;
  }

  // Is each block but the first reached from earlier ones of the range alone?
  bool is_straight(uint32_t first, uint32_t last) {
    for (uint32_t number = first + 1; number <= last; number++)
      for (const BasicBlock *before : predecessors(in_order_[number]))
        if (blocks_[before] < first || blocks_[before] >= number)
          return false;
    return true;
  }

  void put(const Range &range) {
    AllocaInst *place = place_for(range);
    SmallVector<Use *, 8> uses;
    for (Use &use : range.value->uses())
      if (needed_at(use)->getParent() != range.value->getParent())
        uses.push_back(&use);
    IRBuilder<> behind(range.value->getParent(), *range.value->getInsertionPointAfterDef());
    ours(behind.CreateStore(range.value, place));
    DenseMap<const Instruction *, Value *>
        loads; // of the edges of one phi that come from one block
    for (Use *use : uses) {
      Instruction *needed = needed_at(*use);
      Value *&load = loads[needed];
      if (!load) {
        IRBuilder<> before(needed);
        load = ours(before.CreateLoad(range.value->getType(), place));
      }
      use->set(load);
    }
  }

  AllocaInst *place_for(const Range &range) {
    for (Slot &slot : slots_)
      if (slot.free_from <= range.first) {
        slot.free_from = range.last;
        return slot.place;
      }
    IRBuilder<> entry(&function_.getEntryBlock(), function_.getEntryBlock().begin());
    slots_.push_back({entry.CreateAlloca(entry.getInt64Ty()), range.last});
    return slots_.back().place;
  }

  Function &function_;
  const DataLayout &layout_;
  DenseMap<const BasicBlock *, uint32_t> blocks_;
  std::vector<BasicBlock *> in_order_;
  DenseMap<const Instruction *, uint32_t> positions_;
  SmallVector<Slot, 8> slots_;
};

// Then it comes to a use again when the place is somebody else's.
bool is_returned_to_twice(const Function &function) {
  return function.callsFunctionThatReturnsTwice() ||
         any_of(instructions(function), [](const Instruction &each) {
           auto *call = dyn_cast<IntrinsicInst>(&each);
           return call && call->getIntrinsicID() == Intrinsic::eh_sjlj_setjmp;
         });
}

} // namespace

void share_frame_slots(Function &function) {
  if (function.hasOptNone() && !function.isPresplitCoroutine() && !is_returned_to_twice(function))
    FrameSlots(function).run();
}

} // namespace assay::compiler
