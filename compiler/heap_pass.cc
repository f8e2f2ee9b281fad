// Naive: after each interesting access, one addition to the counter of each 64-byte block that it reaches.
// How many these are follows from its size and alignment; where it does not, three instructions ask the
// address whether there is one more.
//
// Coalesced: within a basic block, accesses that surely reach the same blocks share one
// addition, placed after the last of them. "Surely" comes from alignment: two constant offsets from
// one base that is a multiple of A lie in one block if they lie in the same A bytes, for A up
// to 64. Neighbours of which one must be asked about share the question: mostly they lie in one block, and
// have one addition there. Calls that may free, exit, throw or wait end the sharing, so that counts are in memory
// when anybody can look. Both give the same counter values at every such point; the naive form is
// kept as the oracle.
//
// Counting after the access, never before: the program's own fault comes first, with its own
// address.
//
// Source: heap-profiler.txt, "Compiler" ("aggressively coalescing counter updates").

#include "abi/sites.h"
#include "compiler/access.h"
#include "compiler/access_groups.h"
#include "compiler/called_accesses.h"
#include "compiler/counting.h"
#include "compiler/tool_pass.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Analysis/MemoryBuiltins.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace assay::compiler::heap {
namespace {

// LLVM's scheduler takes time by the square of the instructions between two calls: so long basic blocks, as
// generators write them, have calls.
constexpr size_t kMaxBetweenCalls = 128;

class HeapInstrumenter {
public:
  HeapInstrumenter(Function &function, const ToolRequest &options, const TargetLibraryInfo &library)
      : function_(function), module_(*function.getParent()), layout_(function.getDataLayout()),
        options_(options), interest_{(options.mode & ASSAY_COUNTERS_GLOBALS) != 0,
                                     (options.mode & ASSAY_COUNTERS_STACK) != 0},
        library_(library), counting_(function, options.mode, options.exact),
        groups_(layout_, counting_.block_bytes(), options.naive) {}

  bool run() {
    for (BasicBlock &block : function_)
      collect(block);
    const ArrayRef<AccessCluster> clusters = groups_.clusters();
    for (size_t i = clusters.size(); i-- > 0;) // to split a block takes as long as what lies behind
      count(clusters[i], calls_.test((unsigned)i));
    for (auto &[instruction, range] : called_.ranges)
      count(*instruction, range);
    for (auto &[instruction, vector] : called_.vectors)
      count(*instruction, vector);
    for (auto &[instruction, string] : called_.strings)
      count(*instruction, string);
    for (auto &[instruction, masked] : called_.masked)
      count(*instruction, masked);
    return !clusters.empty() || !called_.empty();
  }

private:
  void collect(BasicBlock &block) {
    const size_t before = groups_.clusters().size();
    for (Instruction &instruction : block) {
      if (is_barrier(instruction))
        groups_.close();
      if (std::optional<Access> access = interesting(instruction, interest_))
        groups_.add(instruction, *access);
      called_.collect(instruction, library_, interest_);
    }
    groups_.close();
    calls_.resize((unsigned)groups_.clusters().size());
    for (size_t i = before + kMaxBetweenCalls; i < calls_.size(); i += kMaxBetweenCalls)
      calls_.set((unsigned)i);
  }

  void count(const AccessGroup &group, IRBuilder<> &builder) {
    counting_.add(builder, group.pointer, group.place, group.reads, group.writes);
  }

  void count(const AccessCluster &cluster, bool calls) {
    const AccessGroup *newest = &cluster[0];
    int64_t last = cluster[0].place.last;
    uint32_t reads = 0, writes = 0;
    for (const AccessGroup &group : cluster) {
      newest = group.order > newest->order ? &group : newest;
      last = std::max(last, group.place.last);
      reads += group.reads;
      writes += group.writes;
    }
    BuilderAfter builder(*newest->last);
    if (calls) {
      for (const AccessGroup &group : cluster)
        counting_.call(builder, group.pointer, group.place, group.reads, group.writes);
      return;
    }
    if (cluster.size() == 1) {
      count(*newest, builder);
      return;
    }
    Value *pointer = cluster[0].pointer;
    Value *apart =
        counting_.crosses(builder, pointer, (uint64_t)(last - cluster[0].place.first) + 1);
    Instruction *in_two = nullptr, *in_one = nullptr;
    SplitBlockAndInsertIfThenElse(apart, builder.GetInsertPoint(), &in_two, &in_one,
                                  unlikely(builder.getContext()));
    IRBuilder<> together(in_one);
    together.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
    counting_.add_one(together, pointer, reads, writes);
    for (const AccessGroup &group : cluster) {
      IRBuilder<> alone(in_two);
      alone.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
      count(group, alone);
    }
  }

  Value *how(IRBuilder<> &builder, bool writes, uint32_t more = 0) {
    return builder.getInt32((writes ? ASSAY_ACCESS_WRITE : ASSAY_ACCESS_READ) |
                            (options_.exact ? ASSAY_ACCESS_ATOMIC : 0) | more);
  }

  void count(Instruction &instruction, const RangeAccess &range) {
    BuilderAfter builder(instruction, range.before);
    builder.CreateCall(hook(module_, "__assay_heap_range"),
                       {range.pointer, bytes_of(builder, range), how(builder, range.writes)});
  }

  void count(Instruction &instruction, const VectorAccess &access) {
    BuilderAfter builder(instruction, access.before);
    SmallVector<Value *, 4> arguments = parts_of(builder, access);
    arguments.push_back(how(builder, access.writes));
    builder.CreateCall(hook(module_, "__assay_heap_vector"), arguments);
  }

  void count(Instruction &instruction, const StringAccess &access) {
    BuilderAfter builder(instruction);
    Value *limit = bytes_or_all(builder, access.limit);
    if (access.other)
      builder.CreateCall(hook(module_, "__assay_heap_compare"),
                         {access.string, access.other, limit,
                          how(builder, false, access.stops_at_zero ? ASSAY_ACCESS_STRING : 0)});
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
  const ToolRequest &options_;
  const Interest interest_;
  const TargetLibraryInfo &library_;
  Counting counting_;
  AccessGroups groups_;
  BitVector calls_; // clusters that call the runtime, for the reason at kMaxBetweenCalls
  CalledAccesses called_;
};

// Gives each global variable of the module blocks of its own.
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

} // namespace

extern const ToolPass pass;
const ToolPass pass = {
    .name = "heap",
    .prepare =
        [](Module &module, ToolRequest &request) {
          if (request.mode & ASSAY_COUNTERS_GLOBALS)
            align_globals(module);
        },
    .instrument =
        [](Function &function, const ToolRequest &request, FunctionAnalysisManager &analyses) {
          HeapInstrumenter(function, request, analyses.getResult<TargetLibraryAnalysis>(function))
              .run();
        },
};

} // namespace assay::compiler::heap
