// In memory, a counter costs one instruction and its share of finding where this thread counts: that is read at the function's
// entry and at the head of each loop that calls, so that a thread which is told to sample soon does. While it samples, it counts
// where all counters are negative: the sign of the sum is the whole test.
//
// In loops without calls, counters are kept in registers, and added when the loop is left. With windows they count down: at zero,
// after a few thousand executions, the runtime is told and says how many may go by until the next time; one, while it samples.
//
// Refused: a spanning tree of counted edges, which is exact only where every function returns.

#include "compiler/fields_stretches.h"

#include "compiler/counting.h"
#include "compiler/places.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr uint64_t kPiece = 4096; // executions in a loop that the runtime does not hear of
constexpr size_t kMaxInRegisters = 6;

} // namespace

bool may_not_return(const Instruction &instruction) {
  auto *call = dyn_cast<CallBase>(&instruction);
  return call && !isa<DbgInfoIntrinsic, MemIntrinsic>(call) &&
         !(call->hasFnAttr(Attribute::WillReturn) && call->doesNotThrow());
}

bool StretchCounters::is_quiet(Loop *loop) {
  auto [known, is_new] = quiet_.try_emplace(loop, false);
  if (!is_new)
    return known->second;
  bool quiet = loop->getLoopPreheader() && loop->hasDedicatedExits() &&
               none_of(loop->blocks(), [](BasicBlock *block) {
                 return any_of(*block, may_not_return) || isa<CallBrInst>(block->getTerminator());
               });
  return quiet_[loop] = quiet;
}

// The outermost loop around the block that calls nothing.
Loop *StretchCounters::quiet_loop_of(BasicBlock *block) {
  Loop *found = nullptr;
  for (Loop *loop = naive_ ? nullptr : loops_.getLoopFor(block); loop && is_quiet(loop);
       loop = loop->getParentLoop())
    found = loop;
  return found;
}

void StretchCounters::count(ArrayRef<Stretch> stretches) {
  struct Counter {
    uint64_t number;
    Loop *loop;
    Value *distance; // read before blocks are split
  };
  SmallVector<Counter, 32> counters;
  MapVector<Loop *, SmallVector<InLoop, 4>> in_loops;
  for (const Stretch &stretch : stretches) {
    uint64_t number = unit_.add(function_, stretch.line, stretch.items);
    Loop *loop = quiet_loop_of(stretch.last->getParent());
    if (loop && in_loops[loop].size() == kMaxInRegisters)
      loop = nullptr;
    if (loop)
      in_loops[loop].push_back({number, &stretch, nullptr, nullptr});
    counters.push_back({number, loop, loop ? nullptr : distance_at(stretch.last->getParent())});
  }
  SmallVector<Value *, 8> before_loops; // read before blocks are split, too
  for (auto &[loop, kept] : in_loops)
    before_loops.push_back(distance_at(loop->getLoopPreheader()));
  for (auto [loop_and_kept, distance] : zip(in_loops, before_loops)) {
    auto &[loop, kept] = loop_and_kept;
    IRBuilder<> entry(&*function_.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    for (InLoop &counter : kept) {
      counter.left = entry.CreateAlloca(entry.getInt64Ty());
      counter.piece = windows_ ? entry.CreateAlloca(entry.getInt64Ty()) : nullptr;
    }
    count_in_loop(*loop, distance, kept);
  }
  // Backwards: to split a block takes as long as what lies behind.
  DenseMap<uint64_t, const InLoop *> in_loop;
  SmallVector<AllocaInst *, 16> variables;
  for (auto &[loop, kept] : in_loops)
    for (const InLoop &counter : kept) {
      in_loop[counter.number] = &counter;
      variables.push_back(counter.left);
      if (counter.piece)
        variables.push_back(counter.piece);
    }
  for (size_t i = stretches.size(); i-- > 0;)
    if (const InLoop *kept = in_loop.lookup(counters[i].number))
      step(*kept);
    else
      count_in_memory(counters[i].number, stretches[i], counters[i].distance);
  if (!variables.empty()) {
    DominatorTree dominators(function_);
    PromoteMemToReg(variables, dominators);
  }
}

// Where this thread's distance stands, read once at the function's entry.
Value *StretchCounters::thread() {
  if (!thread_) {
    IRBuilder<> builder(&*function_.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    Constant *variable =
        thread_local_hook(*function_.getParent(), "__assay_fields_thread", builder.getPtrTy());
    thread_ =
        ours(builder.CreateLoad(builder.getPtrTy(), builder.CreateThreadLocalAddress(variable)));
  }
  return thread_;
}

// The address of the unit's first counter, for this thread: as read in the nearest place that is surely passed before.
Value *StretchCounters::distance_at(BasicBlock *block) {
  BasicBlock *entry = &function_.getEntryBlock();
  BasicBlock *place = entry;
  for (Loop *loop = loops_.getLoopFor(block); loop; loop = loop->getParentLoop())
    if (!is_quiet(loop)) {
      place = loop->getHeader();
      break;
    }
  if (place != entry && place->getFirstInsertionPt() == place->end()) // a block of catchswitch
    place = entry;
  Value *&known = distances_[place];
  if (!known) {
    Value *own = thread();
    IRBuilder<> builder(place == entry ? cast<Instruction>(own)->getNextNode()
                                       : &*place->getFirstInsertionPt());
    Type *word = builder.getInt64Ty();
    known = builder.CreateAdd(ours(builder.CreateLoad(word, own)),
                              ours(builder.CreateLoad(word, unit_.base())));
  }
  return known;
}

Value *StretchCounters::counter_at(IRBuilder<> &builder, Value *distance, uint64_t number) {
  return builder.CreateIntToPtr(builder.CreateAdd(distance, builder.getInt64(number * 8)),
                                builder.getPtrTy());
}

SmallVector<Value *, 4> StretchCounters::arguments_of(IRBuilder<> &builder,
                                                      const Stretch *stretch) {
  SmallVector<Value *, 4> arguments;
  for (size_t i = 0; i < 4; i++)
    arguments.push_back(stretch && i < stretch->bases.size()
                            ? stretch->bases[i].pointer
                            : ConstantPointerNull::get(builder.getPtrTy()));
  return arguments;
}

// Where the thread counted when the distance was read, all counters may be negative: then the runtime knows where to.
void StretchCounters::add(IRBuilder<> &builder, Value *counter, Value *n,
                          function_ref<void(IRBuilder<> &)> report) {
  Type *word = builder.getInt64Ty();
  Value *sum = builder.CreateAdd(ours(builder.CreateLoad(word, counter)), n);
  ours(builder.CreateStore(sum, counter));
  if (!windows_)
    return;
  Value *samples = builder.CreateICmpSLT(sum, builder.getInt64(0));
  IRBuilder<> slow(SplitBlockAndInsertIfThen(samples, builder.GetInsertPoint(), false,
                                             unlikely(builder.getContext())));
  slow.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
  report(slow);
}

// So many executions; the result says how many may go by until the next time.
Value *StretchCounters::tell(IRBuilder<> &builder, uint64_t number, Value *executions,
                             const Stretch *stretch) {
  Value *first = ours(builder.CreateLoad(builder.getInt64Ty(), unit_.base()));
  SmallVector<Value *, 6> arguments = {counter_at(builder, first, number), executions};
  arguments.append(arguments_of(builder, stretch));
  return call_keeping_registers(builder, "__assay_fields_piece", arguments);
}

void StretchCounters::count_in_memory(uint64_t number, const Stretch &stretch, Value *distance) {
  BuilderAfter builder(*stretch.last);
  Value *counter = counter_at(builder, distance, number);
  add(builder, counter, builder.getInt64(1), [&](IRBuilder<> &slow) {
    SmallVector<Value *, 5> arguments = {counter};
    arguments.append(arguments_of(slow, &stretch));
    call_keeping_registers(slow, "__assay_fields_sample", arguments);
  });
}

// Around the loop: the registers get their first value before it, and are added to the counters behind it.
void StretchCounters::count_in_loop(Loop &loop, Value *distance, ArrayRef<InLoop> counters) {
  IRBuilder<> builder(loop.getLoopPreheader()->getTerminator());
  Type *word = builder.getInt64Ty();
  for (const InLoop &counter : counters) {
    Value *first = builder.getInt64(0);
    if (windows_) {
      Value *now = ours(builder.CreateLoad(word, counter_at(builder, distance, counter.number)));
      first = builder.CreateSelect(builder.CreateICmpSLT(now, builder.getInt64(0)),
                                   builder.getInt64(1), builder.getInt64(kPiece));
      builder.CreateStore(first, counter.piece);
    }
    builder.CreateStore(first, counter.left);
  }
  SmallVector<BasicBlock *, 4> exits;
  loop.getUniqueExitBlocks(exits);
  for (BasicBlock *exit : exits)
    for (const InLoop &counter : counters) {
      IRBuilder<> after(&*exit->getFirstInsertionPt());
      Value *n = after.CreateLoad(word, counter.left);
      if (windows_)
        n = after.CreateSub(after.CreateLoad(word, counter.piece), n);
      add(after, counter_at(after, distance, counter.number), n,
          [&](IRBuilder<> &slow) { tell(slow, counter.number, n, nullptr); });
    }
}

// In the loop, behind the stretch.
void StretchCounters::step(const InLoop &counter) {
  BuilderAfter builder(*counter.stretch->last);
  Type *word = builder.getInt64Ty();
  Value *left = builder.CreateLoad(word, counter.left);
  if (!windows_) {
    builder.CreateStore(builder.CreateAdd(left, builder.getInt64(1)), counter.left);
    return;
  }
  left = builder.CreateSub(left, builder.getInt64(1));
  builder.CreateStore(left, counter.left);
  Value *is_over = builder.CreateICmpEQ(left, builder.getInt64(0));
  IRBuilder<> slow(SplitBlockAndInsertIfThen(is_over, builder.GetInsertPoint(), false,
                                             unlikely(builder.getContext())));
  slow.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
  Value *piece = tell(slow, counter.number, slow.CreateLoad(word, counter.piece), counter.stretch);
  slow.CreateStore(piece, counter.piece);
  slow.CreateStore(piece, counter.left);
}

} // namespace assay::compiler
