// After an access, a look at its line's byte; only a line that is new in this snapshot is marked:
//
//     cmpb $0, 0x4e000000(%line)     the newest snapshot is the sign
//     jns  new
//   new:                             out of the way
//     orb  $0x80, 0x4e000000(%line)  a constant store would destroy the seven snapshots before
//     ...                            the thread's first new line of a snapshot: its call stack
//
// The `or` is one instruction, but not atomic. Another cpu that shifts the byte in the middle of it is
// undone for this line: its touches move to the neighbouring snapshot, and none is lost. A bit that
// shares its byte with other lines would be lost: there the `or` is atomic.
//
// Coalesced: within a basic block, accesses that surely lie in one line are looked at once, after the
// last of them. Nothing is hoisted out of loops, because a snapshot may end while they run.
//
// Source: working-set.txt, "Approach".

#include "compiler/workingset_pass.h"

#include "abi/shadow.h"
#include "abi/sites.h"
#include "compiler/access.h"
#include "compiler/called_accesses.h"
#include "compiler/counting.h"
#include "compiler/places.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr Interest kEverything = {.globals = true, .stack = true};

// Accesses of one line, or of one address that may lie across two.
struct Touch {
  Place place;
  Instruction *last;
  Value *pointer; // of the last
  uint64_t reach; // bytes that may reach over the line's end; 0 if none can
};

struct Form {
  uint64_t shift, base, line_bytes;
};

Form form_of(uint32_t lines) {
  switch (lines & ASSAY_LINES_FORM) {
  case ASSAY_LINES_BITS: return {ASSAY_BITS_SHIFT, ASSAY_BITS_BASE, 64};
  case ASSAY_LINES_HALF: return {ASSAY_HALF_LINES_SHIFT, ASSAY_HALF_LINES_BASE, 32};
  default: return {ASSAY_LINES_SHIFT, ASSAY_LINES_BASE, 64};
  }
}

class WorkingSetInstrumenter {
public:
  WorkingSetInstrumenter(Function &function, const WorkingSetOptions &options,
                         const TargetLibraryInfo &library)
      : function_(function), module_(*function.getParent()), layout_(function.getDataLayout()),
        options_(options), form_(form_of(options.lines)), library_(library) {}

  bool run() {
    for (BasicBlock &block : function_)
      collect(block);
    for (auto &[instruction, range] : called_.ranges)
      mark(*instruction, range);
    for (auto &[instruction, string] : called_.strings)
      mark(*instruction, string);
    for (auto &[instruction, masked] : called_.masked)
      mark(*instruction, masked);
    for (const Touch &touch : touches_)
      mark(touch);
    for (auto &[end, accesses] : counts_)
      tick(*end, accesses);
    return !touches_.empty() || !called_.empty();
  }

private:
  void collect(BasicBlock &block) {
    open_ = touches_.size();
    uint32_t accesses = 0;
    for (Instruction &instruction : block) {
      if (is_barrier(instruction))
        open_ = touches_.size();
      if (std::optional<Access> access = interesting(instruction, kEverything)) {
        add(instruction, *access);
        accesses++;
      }
      accesses += called_.collect(instruction, library_, kEverything);
    }
    if (accesses && options_.lines & ASSAY_LINES_ACCESSES)
      counts_.push_back({block.getTerminator(), accesses});
  }

  void add(Instruction &instruction, const Access &access) {
    Place place = place_of(access, layout_, form_.line_bytes);
    uint64_t inside = (uint64_t)place.offset & (place.align - 1); // of its granule
    bool within = access.bytes && inside + access.bytes <= place.align;
    if (!within) // accesses of one address only
      place = {place.base, 0, place.offset, place.offset};
    Touch *touch = nullptr;
    for (size_t i = touches_.size(); !options_.naive && !touch && i > open_; i--)
      if (touches_[i - 1].place == place)
        touch = &touches_[i - 1];
    if (!touch)
      touch = &touches_.emplace_back(Touch{place, nullptr, nullptr, 0});
    touch->last = &instruction;
    touch->pointer = access.pointer;
    if (!within)
      touch->reach = std::max(touch->reach, access.bytes);
  }

  void mark(Instruction &instruction, const RangeAccess &range) {
    BuilderAfter builder(instruction);
    builder.CreateCall(hook(module_, "__assay_workingset_range"),
                       {range.pointer, bytes_or_all(builder, range.length)});
  }

  void mark(Instruction &instruction, const StringAccess &access) {
    BuilderAfter builder(instruction);
    Value *limit = bytes_or_all(builder, access.limit);
    if (access.other)
      builder.CreateCall(hook(module_, "__assay_workingset_compare"),
                         {access.string, access.other, limit,
                          builder.getInt32(access.stops_at_zero ? ASSAY_HOW_STRING : 0)});
    else
      builder.CreateCall(hook(module_, "__assay_workingset_string"), {access.string, limit});
  }

  void mark(Instruction &instruction, const MaskedAccess &access) {
    BuilderAfter builder(instruction);
    for_each_call(builder, access, [&](Value *pointer, Value *bits) {
      builder.CreateCall(hook(module_, "__assay_workingset_masked"),
                         {pointer, builder.getInt64(access.element_bytes), bits});
    });
  }

  template <typename T> T *ours(T *instruction) { // not the program's own access
    instruction->setMetadata(LLVMContext::MD_nosanitize,
                             MDNode::get(instruction->getContext(), {}));
    return instruction;
  }

  MDNode *unlikely() { return MDBuilder(module_.getContext()).createUnlikelyBranchWeights(); }

  // The base of the shadow, where it is not a constant: read once, at the function's entry.
  Value *base() {
    if (base_ || !(options_.lines & ASSAY_LINES_DYNAMIC))
      return base_;
    IRBuilder<> builder(&function_.getEntryBlock(),
                        function_.getEntryBlock().getFirstInsertionPt());
    Constant *variable = module_.getOrInsertGlobal("__assay_lines_base", builder.getInt64Ty());
    return base_ = ours(builder.CreateLoad(builder.getInt64Ty(), variable));
  }

  void mark(const Touch &touch) {
    if (touch.reach > form_.line_bytes) {
      BuilderAfter builder(*touch.last);
      builder.CreateCall(hook(module_, "__assay_workingset_range"),
                         {touch.pointer, builder.getInt64(touch.reach)});
      return;
    }
    Value *dynamic = base();
    BuilderAfter builder(*touch.last);
    Value *address = builder.CreatePtrToInt(touch.pointer, builder.getInt64Ty());
    if (touch.reach) {
      Value *inside = builder.CreateAnd(address, builder.getInt64(form_.line_bytes - 1));
      Value *over = builder.CreateICmpUGT(inside, builder.getInt64(form_.line_bytes - touch.reach));
      IRBuilder<> two(SplitBlockAndInsertIfThen(over, builder.GetInsertPoint(), false, unlikely()));
      two.SetCurrentDebugLocation(touch.last->getDebugLoc());
      two.CreateCall(hook(module_, "__assay_workingset_range"),
                     {touch.pointer, two.getInt64(touch.reach)});
      // The first line is looked at all the same: the call marked it.
      builder.SetInsertPoint(two.GetInsertBlock()->getSingleSuccessor(),
                             two.GetInsertBlock()->getSingleSuccessor()->begin());
    }
    Value *place = builder.CreateLShr(address, form_.shift);
    place = builder.CreateAdd(place, dynamic ? dynamic : builder.getInt64(form_.base));
    Value *byte = builder.CreateIntToPtr(place, builder.getPtrTy());
    Value *bit = builder.getInt8(ASSAY_LINE_TOUCHED), *is_new;
    LoadInst *seen = ours(builder.CreateLoad(builder.getInt8Ty(), byte));
    bool bits = (options_.lines & ASSAY_LINES_FORM) == ASSAY_LINES_BITS;
    if (bits) {
      Value *line = builder.CreateTrunc(builder.CreateLShr(address, 6), builder.getInt8Ty());
      bit = builder.CreateShl(builder.getInt8(1), builder.CreateAnd(line, builder.getInt8(7)));
      is_new = builder.CreateICmpEQ(builder.CreateAnd(seen, bit), builder.getInt8(0));
    } else {
      is_new = builder.CreateICmpSGE(seen, builder.getInt8(0));
    }
    IRBuilder<> slow(
        SplitBlockAndInsertIfThen(is_new, builder.GetInsertPoint(), false, unlikely()));
    slow.SetCurrentDebugLocation(touch.last->getDebugLoc());
    if (bits) {
      ours(slow.CreateAtomicRMW(AtomicRMWInst::Or, byte, bit, Align(1), AtomicOrdering::Monotonic));
    } else {
      LoadInst *old = ours(slow.CreateLoad(slow.getInt8Ty(), byte));
      ours(slow.CreateStore(slow.CreateOr(old, bit), byte));
    }
    ask_for_stack(slow);
  }

  Constant *thread_local_hook(StringRef name, Type *type) {
    return module_.getOrInsertGlobal(name, type, [&] {
      return new GlobalVariable(module_, type, false, GlobalValue::ExternalLinkage, nullptr, name,
                                nullptr, GlobalValue::InitialExecTLSModel);
    });
  }

  void call_keeping_registers(IRBuilder<> &builder, StringRef name) {
    FunctionCallee callee = hook(module_, name);
    CallInst *call = builder.CreateCall(callee, {});
    if (auto *function = dyn_cast<Function>(callee.getCallee()))
      function->setCallingConv(CallingConv::PreserveMost);
    call->setCallingConv(CallingConv::PreserveMost);
  }

  void ask_for_stack(IRBuilder<> &builder) {
    Type *word = builder.getInt32Ty();
    Constant *now = module_.getOrInsertGlobal("__assay_snapshot", word);
    Constant *said = thread_local_hook("__assay_stack_snapshot", word);
    Value *differ = builder.CreateICmpNE(
        ours(builder.CreateLoad(word, now)),
        ours(builder.CreateLoad(word, builder.CreateThreadLocalAddress(said))));
    IRBuilder<> ask(SplitBlockAndInsertIfThen(differ, builder.GetInsertPoint(), false, unlikely()));
    ask.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
    call_keeping_registers(ask, "__assay_workingset_stack");
  }

  // At the end of a block, before what it decides.
  void tick(Instruction &end, uint32_t accesses) {
    IRBuilder<> builder(&end);
    Type *word = builder.getInt64Ty();
    Value *left =
        builder.CreateThreadLocalAddress(thread_local_hook("__assay_accesses_left", word));
    Value *after =
        builder.CreateSub(ours(builder.CreateLoad(word, left)), builder.getInt64(accesses));
    ours(builder.CreateStore(after, left));
    Value *over = builder.CreateICmpSLT(after, builder.getInt64(0));
    IRBuilder<> call(SplitBlockAndInsertIfThen(over, end.getIterator(), false, unlikely()));
    call.SetCurrentDebugLocation(end.getDebugLoc());
    call_keeping_registers(call, "__assay_workingset_tick");
  }

  Function &function_;
  Module &module_;
  const DataLayout &layout_;
  const WorkingSetOptions &options_;
  const Form form_;
  const TargetLibraryInfo &library_;
  Value *base_ = nullptr;
  size_t open_ = 0; // touches before this one are closed
  SmallVector<Touch, 32> touches_;
  CalledAccesses called_;
  SmallVector<std::pair<Instruction *, uint32_t>, 16>
      counts_; // before a block's end, accesses in it
};

} // namespace

bool instrument_workingset(Function &function, const WorkingSetOptions &options,
                           const TargetLibraryInfo &library) {
  return WorkingSetInstrumenter(function, options, library).run();
}

} // namespace assay::compiler
