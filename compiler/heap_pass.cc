// Naive: after each interesting access, one addition to the counter of its first byte's block.
//
// Coalesced: within a basic block, accesses that surely lie in one 64-byte block share one
// addition, placed after the last of them. "Surely" comes from alignment: two constant offsets from
// one base that is a multiple of A lie in one block if they lie in the same A bytes, for A up
// to 64. Calls that may free, exit, throw or wait end the sharing, so that counts are in memory
// when anybody can look. Both give the same counter values at every such point; the naive form is
// kept as the oracle.
//
// Counting after the access, never before: the program's own fault comes first, with its own
// address.
//
// Source: heap-profiler.txt, "Compiler" ("aggressively coalescing counter updates").

#include "compiler/heap_pass.h"

#include "abi/sites.h"
#include "compiler/access.h"
#include "compiler/counting.h"
#include "compiler/tags.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/MemoryBuiltins.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace assay::compiler {
namespace {

// A place whose accesses share a counter: granule number `granule` of `align` bytes from base.
struct Place {
  Value *base;
  uint64_t align;
  int64_t granule;
  bool operator==(const Place &other) const {
    return base == other.base && align == other.align && granule == other.granule;
  }
};

struct Group {
  Place place;
  Instruction *last; // the counter is updated after it
  Value *pointer;    // of the last access
  uint32_t reads = 0, writes = 0;
};

// The base and constant offset of a pointer, and the largest alignment of the base that follows
// from the access and from what is known of the base.
Place place_of(const Access &access, const DataLayout &layout, uint64_t block_bytes) {
  APInt offset(layout.getIndexTypeSizeInBits(access.pointer->getType()), 0);
  Value *base = const_cast<Value *>(
      access.pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true));
  int64_t bytes = offset.getSExtValue();
  uint64_t align = commonAlignment(access.align, (uint64_t)bytes).value();
  align = std::max(align, base->getPointerAlignment(layout).value());
  align = std::min(align, block_bytes);
  int64_t granule =
      bytes >= 0 ? bytes / (int64_t)align : -((-bytes + (int64_t)align - 1) / (int64_t)align);
  return {base, align, granule};
}

BasicBlock::iterator after(Instruction *instruction) {
  return std::next(instruction->getIterator());
}

// Builds after an instruction, in its name.
class BuilderAfter : public IRBuilder<> {
public:
  explicit BuilderAfter(Instruction &instruction)
      : IRBuilder<>(instruction.getParent(), after(&instruction)) {
    SetCurrentDebugLocation(instruction.getDebugLoc());
  }
};

class HeapInstrumenter {
public:
  HeapInstrumenter(Function &function, const HeapOptions &options, const TargetLibraryInfo &library,
                   Sites &sites)
      : function_(function), module_(*function.getParent()), layout_(function.getDataLayout()),
        options_(options), interest_{(options.counters & ASSAY_COUNTERS_GLOBALS) != 0,
                                     (options.counters & ASSAY_COUNTERS_STACK) != 0},
        library_(library), sites_(sites), counting_(function, options.counters, options.exact) {}

  bool run() {
    for (BasicBlock &block : function_)
      collect(block);
    for (const Group &group : groups_)
      count(group);
    for (auto &[instruction, range] : ranges_)
      count(*instruction, range);
    for (auto &[instruction, string] : strings_)
      count(*instruction, string);
    for (auto &[instruction, masked] : masked_)
      count(*instruction, masked);
    for (CallBase *call : allocations_)
      announce_type(*call);
    return changed_ || !groups_.empty() || !ranges_.empty() || !strings_.empty() ||
           !masked_.empty() || !allocations_.empty();
  }

private:
  void collect(BasicBlock &block) {
    open_ = groups_.size();
    for (Instruction &instruction : block) {
      if (is_barrier(instruction))
        open_ = groups_.size();
      if (std::optional<Access> access = interesting(instruction, interest_))
        add(instruction, *access);
      for (const RangeAccess &range : interesting_ranges(instruction, library_, interest_))
        ranges_.push_back({&instruction, range});
      for (const StringAccess &string : interesting_strings(instruction, library_, interest_))
        strings_.push_back({&instruction, string});
      if (std::optional<MaskedAccess> masked = interesting_masked(instruction, interest_))
        masked_.push_back({&instruction, *masked});
      if (auto *call = dyn_cast<CallBase>(&instruction))
        collect_allocation(*call);
    }
  }

  // `return malloc(n)` as a jump would leave the function that allocates out of the stack; so would
  // a `free` at a function's end.
  void collect_allocation(CallBase &call) {
    auto *plain = dyn_cast<CallInst>(&call);
    if (plain && (is_allocation(call) || is_free(call)) && plain->isTailCall() &&
        !plain->isMustTailCall()) {
      plain->setTailCallKind(CallInst::TCK_NoTail);
      changed_ = true;
    }
    if (tagged_type(call))
      allocations_.push_back(&call);
  }

  void add(Instruction &instruction, const Access &access) {
    Place place = place_of(access, layout_, counting_.block_bytes());
    Group *group = nullptr;
    for (size_t i = groups_.size(); !options_.naive && !group && i > open_; i--)
      if (groups_[i - 1].place == place)
        group = &groups_[i - 1];
    if (!group)
      group = &groups_.emplace_back(Group{place, nullptr, nullptr});
    group->last = &instruction;
    group->pointer = access.pointer;
    group->reads += access.reads;
    group->writes += access.writes;
  }

  void count(const Group &group) {
    BuilderAfter builder(*group.last);
    counting_.add(builder, group.pointer, group.reads, group.writes);
  }

  Value *how(IRBuilder<> &builder, bool writes, uint32_t more = 0) {
    return builder.getInt32((writes ? ASSAY_HOW_WRITE : ASSAY_HOW_READ) |
                            (options_.exact ? ASSAY_HOW_ATOMIC : 0) | more);
  }

  // A length as 64 bits; all ones where there is none.
  Value *bytes(IRBuilder<> &builder, Value *length) {
    return length ? builder.CreateZExtOrTrunc(length, builder.getInt64Ty())
                  : builder.getInt64(~0ULL);
  }

  void count(Instruction &instruction, const RangeAccess &range) {
    BuilderAfter builder(instruction);
    builder.CreateCall(hook(module_, "__assay_heap_range"),
                       {range.pointer, bytes(builder, range.length), how(builder, range.writes)});
  }

  void count(Instruction &instruction, const StringAccess &access) {
    BuilderAfter builder(instruction);
    Value *limit = bytes(builder, access.limit);
    if (access.other)
      builder.CreateCall(hook(module_, "__assay_heap_compare"),
                         {access.string, access.other, limit,
                          how(builder, false, access.stops_at_zero ? ASSAY_HOW_STRING : 0)});
    else
      builder.CreateCall(hook(module_, "__assay_heap_string"),
                         {access.string, limit, how(builder, access.writes)});
  }

  void count(Instruction &instruction, const MaskedAccess &access) {
    BuilderAfter builder(instruction);
    unsigned lanes = cast<FixedVectorType>(access.mask->getType())->getNumElements();
    Value *mask = builder.CreateZExt(builder.CreateBitCast(access.mask, builder.getIntNTy(lanes)),
                                     builder.getInt64Ty());
    auto call = [&](Value *pointer, Value *bits) {
      builder.CreateCall(
          hook(module_, "__assay_heap_masked"),
          {pointer, builder.getInt64(access.element_bytes), bits, how(builder, access.writes)});
    };
    if (!access.pointer->getType()->isVectorTy()) {
      call(access.pointer, mask);
      return;
    }
    for (unsigned lane = 0; lane < lanes; lane++)
      call(builder.CreateExtractElement(access.pointer, lane),
           builder.CreateAnd(builder.CreateLShr(mask, lane), builder.getInt64(1)));
  }

  // The type's id waits in a thread-local for the allocation function, and is taken back after the
  // call: a custom operator new that allocates nothing must not give its type to somebody else's
  // block.
  void announce_type(CallBase &call) {
    std::optional<TaggedType> type = tagged_type(call);
    if (!type)
      return;
    Constant *variable =
        module_.getOrInsertGlobal("__assay_next_type", Type::getInt32Ty(module_.getContext()), [&] {
          return new GlobalVariable(module_, Type::getInt32Ty(module_.getContext()), false,
                                    GlobalValue::ExternalLinkage, nullptr, "__assay_next_type",
                                    nullptr, GlobalValue::InitialExecTLSModel);
        });
    auto set = [&](BasicBlock *block, BasicBlock::iterator where, uint32_t id) {
      IRBuilder<> builder(block, where);
      builder.SetCurrentDebugLocation(call.getDebugLoc());
      builder.CreateStore(builder.getInt32(id), builder.CreateThreadLocalAddress(variable));
    };
    set(call.getParent(), call.getIterator(), sites_.type_id(*type));
    if (isa<CallInst>(call) && !cast<CallInst>(call).isMustTailCall()) {
      cast<CallInst>(call).setTailCallKind(CallInst::TCK_NoTail);
      set(call.getParent(), after(&call), 0);
    }
  }

  Function &function_;
  Module &module_;
  const DataLayout &layout_;
  const HeapOptions &options_;
  const Interest interest_;
  const TargetLibraryInfo &library_;
  Sites &sites_;
  Counting counting_;
  bool changed_ = false;
  size_t open_ = 0; // groups before this one are closed
  SmallVector<Group, 32> groups_;
  SmallVector<std::pair<Instruction *, RangeAccess>, 8> ranges_;
  SmallVector<std::pair<Instruction *, StringAccess>, 4> strings_;
  SmallVector<std::pair<Instruction *, MaskedAccess>, 4> masked_;
  SmallVector<CallBase *, 8> allocations_;
};

} // namespace

void align_globals(Module &module) {
  for (GlobalVariable &global : module.globals()) {
    if (global.isDeclarationForLinker() || global.isThreadLocal() || global.hasSection() ||
        global.hasAppendingLinkage() || global.getName().starts_with("llvm.") ||
        global.getName().starts_with("__assay_"))
      continue;
    if (global.isConstant() && global.hasPrivateLinkage()) // literals, which the linker merges
      continue;
    if (global.getAlign().valueOrOne() < Align(64))
      global.setAlignment(Align(64));
  }
}

bool instrument_heap(Function &function, const HeapOptions &options,
                     const TargetLibraryInfo &library, Sites &sites) {
  return HeapInstrumenter(function, options, library, sites).run();
}

} // namespace assay::compiler
