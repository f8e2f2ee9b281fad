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
#include "compiler/called_accesses.h"
#include "compiler/counting.h"
#include "compiler/places.h"
#include "compiler/tool_pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/MemoryBuiltins.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace assay::compiler::heap {
namespace {

// Accesses of one place.
struct Group {
  Place place; // of an access, as is the pointer
  Value *pointer = nullptr;
  Instruction *last = nullptr; // the counter is updated after it
  size_t order = 0;            // of that instruction, in the function
  uint32_t reads = 0, writes = 0;
};

// Neighbours, in their order in memory.
struct Cluster {
  SmallVector<Group, 1> groups;
  bool calls = false; // the runtime, for the reason at kMaxBetweenCalls
};

// LLVM's scheduler takes time by the square of the instructions between two calls: so long basic blocks, as
// generators write them, have calls.
constexpr size_t kMaxBetweenCalls = 128;

class HeapInstrumenter {
public:
  HeapInstrumenter(Function &function, const ToolRequest &options, const TargetLibraryInfo &library)
      : function_(function), module_(*function.getParent()), layout_(function.getDataLayout()),
        options_(options), interest_{(options.mode & ASSAY_COUNTERS_GLOBALS) != 0,
                                     (options.mode & ASSAY_COUNTERS_STACK) != 0},
        library_(library), counting_(function, options.mode, options.exact) {}

  bool run() {
    for (BasicBlock &block : function_)
      collect(block);
    for (const Cluster &cluster :
         reverse(clusters_)) // to split a block takes as long as what lies behind
      count(cluster);
    for (auto &[instruction, range] : called_.ranges)
      count(*instruction, range);
    for (auto &[instruction, string] : called_.strings)
      count(*instruction, string);
    for (auto &[instruction, masked] : called_.masked)
      count(*instruction, masked);
    return !clusters_.empty() || !called_.empty();
  }

private:
  void collect(BasicBlock &block) {
    const size_t before = clusters_.size();
    for (Instruction &instruction : block) {
      if (is_barrier(instruction))
        close();
      if (std::optional<Access> access = interesting(instruction, interest_))
        add(instruction, *access);
      called_.collect(instruction, library_, interest_);
    }
    close();
    for (size_t i = before + kMaxBetweenCalls; i < clusters_.size(); i += kMaxBetweenCalls)
      clusters_[i].calls = true;
  }

  void add(Instruction &instruction, const Access &access) {
    const Place place = place_of(access, layout_, counting_.block_bytes());
    auto [found, is_new] = open_.insert({place.key(), {.place = place, .pointer = access.pointer}});
    Group &group = found->second;
    if (place.reach % counting_.block_bytes() == 0) // then its blocks are known best
      group.place = place, group.pointer = access.pointer;
    group.last = &instruction;
    group.order = added_++;
    group.reads += access.reads;
    group.writes += access.writes;
    if (options_.naive)
      close();
  }

  // What comes shares nothing with what was.
  void close() {
    MapVector<Value *, SmallVector<Group, 4>> by_base;
    for (auto &[key, group] : open_)
      by_base[group.place.base].push_back(group);
    open_.clear();
    for (auto &[base, groups] : by_base) {
      sort(groups, [](const Group &a, const Group &b) {
        return std::tie(a.place.first, a.order) < std::tie(b.place.first, b.order);
      });
      for (ArrayRef<Group> left = groups; !left.empty();) {
        size_t n = neighbours(left);
        clusters_.push_back({SmallVector<Group, 1>(left.take_front(n))});
        left = left.drop_front(n);
      }
    }
  }

  // How many of the first groups one question serves: do they lie in one block? It is asked where one of
  // them must be asked about anyway, and of so few bytes that the answer is mostly yes.
  size_t neighbours(ArrayRef<Group> groups) const {
    bool asks = false;
    size_t n = 0;
    for (const Group &group : groups) {
      int64_t bytes = group.place.last - groups[0].place.first + 1;
      if (bytes > (int64_t)counting_.block_bytes() / 2)
        break;
      asks |= group.place.reach != 0;
      n++;
    }
    return asks ? n : 1;
  }

  void count(const Group &group, IRBuilder<> &builder) {
    counting_.add(builder, group.pointer, group.place, group.reads, group.writes);
  }

  void count(const Cluster &neighbours) {
    const ArrayRef<Group> cluster = neighbours.groups;
    const Group *newest = &cluster[0];
    int64_t last = cluster[0].place.last;
    uint32_t reads = 0, writes = 0;
    for (const Group &group : cluster) {
      newest = group.order > newest->order ? &group : newest;
      last = std::max(last, group.place.last);
      reads += group.reads;
      writes += group.writes;
    }
    BuilderAfter builder(*newest->last);
    if (neighbours.calls) {
      for (const Group &group : cluster)
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
    for (const Group &group : cluster) {
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
  MapVector<decltype(Place().key()), Group> open_; // of now
  size_t added_ = 0;
  SmallVector<Cluster, 32> clusters_;
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
        [](Module &module, const ToolRequest &request) {
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
