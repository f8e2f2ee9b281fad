// After an access, a look at its line's byte; only a line that is new in this snapshot is marked:
//
//     cmpb $0, 0x4e000000(%line)     the newest snapshot is the sign
//     jns  new
//   new:                             out of the way
//     call __assay_workingset_mark   keeps the registers; sets the bit, once a snapshot
//
// Several bytes of the shadow are looked at together: the sign of `first & second`.
//
// Source: working-set.txt, "Approach".

#include "compiler/workingset_pass.h"

#include "abi/shadow.h"
#include "abi/sites.h"
#include "compiler/access.h"
#include "compiler/called_accesses.h"
#include "compiler/counting.h"
#include "compiler/looks.h"
#include "compiler/places.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr Interest kEverything = {.globals = true, .stack = true};

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
                         const TargetLibraryInfo &library, ScalarEvolution &evolution)
      : function_(function), module_(*function.getParent()), layout_(function.getDataLayout()),
        options_(options), form_(form_of(options.lines)), library_(library),
        looks_(evolution, {form_.line_bytes, options.naive,
                           // with a clock of accesses, a snapshot ends at the end of a block
                           !options.naive && !(options.lines & ASSAY_LINES_ACCESSES)}) {}

  bool run() {
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function_))
      collect(*block);
    for (auto &[instruction, range] : called_.ranges)
      mark(*instruction, range);
    for (auto &[instruction, string] : called_.strings)
      mark(*instruction, string);
    for (auto &[instruction, masked] : called_.masked)
      mark(*instruction, masked);
    for (const Look &look : looks_.all())
      mark(look);
    for (auto &[end, accesses] : counts_)
      tick(*end, accesses);
    return !looks_.all().empty() || !called_.empty();
  }

private:
  void collect(BasicBlock &block) {
    looks_.begin(block);
    uint32_t accesses = 0;
    for (Instruction &instruction : block) {
      if (takes_time(instruction))
        looks_.pause();
      if (std::optional<Access> access = interesting(instruction, kEverything)) {
        add(instruction, *access);
        accesses++;
      }
      size_t known = called_.ranges.size();
      accesses += called_.collect(instruction, library_, kEverything);
      for (; known < called_.ranges.size() && is_short(called_.ranges.back().second);
           called_.ranges.pop_back())
        add(instruction, as_access(called_.ranges.back().second));
    }
    looks_.end();
    if (accesses && options_.lines & ASSAY_LINES_ACCESSES)
      counts_.push_back({block.getTerminator(), accesses});
  }

  static bool takes_time(const Instruction &instruction) {
    auto *call = dyn_cast<CallBase>(&instruction);
    if (!call)
      return false;
    if (auto *intrinsic = dyn_cast<IntrinsicInst>(call)) // from setjmp on, anything may have been
      return intrinsic->getIntrinsicID() == Intrinsic::eh_sjlj_setjmp;
    const Function *callee = call->getCalledFunction(); // what another tool has put in takes none
    return !(callee && callee->getName().starts_with("__assay_heap_"));
  }

  bool is_short(const RangeAccess &range) const {
    auto *length = dyn_cast_or_null<ConstantInt>(range.length);
    return length && !length->isZero() && length->getValue().ule(form_.line_bytes);
  }

  Access as_access(const RangeAccess &range) const {
    return {range.pointer, cast<ConstantInt>(range.length)->getZExtValue(),
            range.pointer->getPointerAlignment(layout_), !range.writes, range.writes};
  }

  void add(Instruction &instruction, const Access &access) {
    if (access.bytes <= form_.line_bytes) {
      looks_.add(instruction, access);
      return;
    }
    Type *word = Type::getInt64Ty(module_.getContext());
    called_.ranges.push_back(
        {&instruction, {access.pointer, ConstantInt::get(word, access.bytes), access.writes}});
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

  // The base of the shadow, where it is not a constant.
  Value *base() {
    if (!base_ && options_.lines & ASSAY_LINES_DYNAMIC)
      base_ = load_at_entry(function_, "__assay_lines_base");
    return base_;
  }

  void mark(const Look &look) {
    const bool bits = (options_.lines & ASSAY_LINES_FORM) == ASSAY_LINES_BITS;
    Value *dynamic = base();
    BuilderAfter builder(*look.after);
    Value *seen = builder.getInt8(0xff);
    SmallVector<Value *, 4> lines;
    for (const TouchedByte &byte : look.bytes) {
      Value *address = builder.CreatePtrToInt(byte.pointer, builder.getInt64Ty());
      address = builder.CreateAdd(address, builder.getInt64((uint64_t)byte.offset));
      Value *number = builder.CreateLShr(address, Log2_64(form_.line_bytes));
      Value *place = bits ? builder.CreateLShr(address, form_.shift) : number;
      place = builder.CreateAdd(place, dynamic ? dynamic : builder.getInt64(form_.base));
      Value *marks = ours(builder.CreateLoad(builder.getInt8Ty(),
                                             builder.CreateIntToPtr(place, builder.getPtrTy())));
      if (bits) { // the line's up to the sign
        Value *bit = builder.CreateTrunc(number, builder.getInt8Ty());
        bit = builder.CreateAnd(bit, builder.getInt8(7));
        marks = builder.CreateShl(marks, builder.CreateSub(builder.getInt8(7), bit));
      }
      seen = builder.CreateAnd(marks, seen);
      lines.push_back(number);
    }
    Value *is_new = builder.CreateICmpSGE(seen, builder.getInt8(0));
    IRBuilder<> slow(
        SplitBlockAndInsertIfThen(is_new, builder.GetInsertPoint(), false, unlikely()));
    slow.SetCurrentDebugLocation(look.after->getDebugLoc());
    for (Value *line : lines) // to mark a line again does no harm
      call_keeping_registers(slow, "__assay_workingset_mark", {line});
  }

  void call_keeping_registers(IRBuilder<> &builder, StringRef name, ArrayRef<Value *> arguments) {
    FunctionCallee callee = hook(module_, name);
    CallInst *call = builder.CreateCall(callee, arguments);
    if (auto *function = dyn_cast<Function>(callee.getCallee()))
      function->setCallingConv(CallingConv::PreserveMost);
    call->setCallingConv(CallingConv::PreserveMost);
  }

  // At the end of a block, before what it decides.
  void tick(Instruction &end, uint32_t accesses) {
    IRBuilder<> builder(&end);
    Type *word = builder.getInt64Ty();
    Value *left =
        builder.CreateThreadLocalAddress(thread_local_hook(module_, "__assay_accesses_left", word));
    Value *after =
        builder.CreateSub(ours(builder.CreateLoad(word, left)), builder.getInt64(accesses));
    ours(builder.CreateStore(after, left));
    Value *over = builder.CreateICmpSLT(after, builder.getInt64(0));
    IRBuilder<> call(SplitBlockAndInsertIfThen(over, end.getIterator(), false, unlikely()));
    call.SetCurrentDebugLocation(end.getDebugLoc());
    call_keeping_registers(call, "__assay_workingset_tick", {});
  }

  Function &function_;
  Module &module_;
  const DataLayout &layout_;
  const WorkingSetOptions &options_;
  const Form form_;
  const TargetLibraryInfo &library_;
  Value *base_ = nullptr;
  Looks looks_;
  CalledAccesses called_;
  SmallVector<std::pair<Instruction *, uint32_t>, 16>
      counts_; // before a block's end, accesses in it
};

} // namespace

bool instrument_workingset(Function &function, const WorkingSetOptions &options,
                           const TargetLibraryInfo &library, ScalarEvolution &evolution) {
  return WorkingSetInstrumenter(function, options, library, evolution).run();
}

} // namespace assay::compiler
