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
#include "compiler/called_accesses.h"
#include "compiler/counting.h"
#include "compiler/places.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/MemoryBuiltins.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace assay::compiler {
namespace {

struct Group {
  Place place;
  Instruction *last; // the counter is updated after it
  Value *pointer;    // of the last access
  uint32_t reads = 0, writes = 0;
};

class HeapInstrumenter {
public:
  HeapInstrumenter(Function &function, const HeapOptions &options, const TargetLibraryInfo &library)
      : function_(function), module_(*function.getParent()), layout_(function.getDataLayout()),
        options_(options), interest_{(options.counters & ASSAY_COUNTERS_GLOBALS) != 0,
                                     (options.counters & ASSAY_COUNTERS_STACK) != 0},
        library_(library), counting_(function, options.counters, options.exact) {}

  bool run() {
    for (BasicBlock &block : function_)
      collect(block);
    for (const Group &group : groups_)
      count(group);
    for (auto &[instruction, range] : called_.ranges)
      count(*instruction, range);
    for (auto &[instruction, string] : called_.strings)
      count(*instruction, string);
    for (auto &[instruction, masked] : called_.masked)
      count(*instruction, masked);
    return !groups_.empty() || !called_.empty();
  }

private:
  void collect(BasicBlock &block) {
    open_ = groups_.size();
    for (Instruction &instruction : block) {
      if (is_barrier(instruction))
        open_ = groups_.size();
      if (std::optional<Access> access = interesting(instruction, interest_))
        add(instruction, *access);
      called_.collect(instruction, library_, interest_);
    }
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

  void count(Instruction &instruction, const RangeAccess &range) {
    BuilderAfter builder(instruction);
    builder.CreateCall(
        hook(module_, "__assay_heap_range"),
        {range.pointer, bytes_or_all(builder, range.length), how(builder, range.writes)});
  }

  void count(Instruction &instruction, const StringAccess &access) {
    BuilderAfter builder(instruction);
    Value *limit = bytes_or_all(builder, access.limit);
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
    for_each_call(builder, access, [&](Value *pointer, Value *bits) {
      builder.CreateCall(
          hook(module_, "__assay_heap_masked"),
          {pointer, builder.getInt64(access.element_bytes), bits, how(builder, access.writes)});
    });
  }

  Function &function_;
  Module &module_;
  const DataLayout &layout_;
  const HeapOptions &options_;
  const Interest interest_;
  const TargetLibraryInfo &library_;
  Counting counting_;
  size_t open_ = 0; // groups before this one are closed
  SmallVector<Group, 32> groups_;
  CalledAccesses called_;
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
                     const TargetLibraryInfo &library) {
  return HeapInstrumenter(function, options, library).run();
}

} // namespace assay::compiler
