// After an access, a look at its line's byte; only a line that is new in this snapshot is marked:
//
//     cmpb $0, 0x4e000000(%line)     the newest snapshot is the sign
//     jns  new
//   new:                             out of the way
//     call __assay_workingset_touch   keeps the registers; sets the bit, once a snapshot
//
// Several marks are looked at together: the sign of `first & second`. What the program has called libc
// for, the runtime follows; it is not called if the ends of a short range are marked already.
//
// Source: working-set.txt, "Approach".

#include "compiler/workingset_touches.h"

#include "abi/sites.h"
#include "compiler/called_accesses.h"
#include "compiler/counting.h"
#include "compiler/places.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace assay::compiler::workingset {
namespace {

Value *is_new(IRBuilder<> &builder, Value *marks) {
  return builder.CreateICmpSGE(marks, builder.getInt8(0));
}

} // namespace

LineTouches::LineTouches(Function &function, const ToolRequest &options)
    : function_(function), module_(*function.getParent()), options_(options),
      form_(assay_line_encoding(options.mode)) {}

void LineTouches::mark(const Check &look) {
  BuilderAfter builder(*look.after);
  SmallVector<Value *, 4> lines;
  Value *marks = marks_of(builder, look.bytes, &lines);
  IRBuilder<> slow(SplitBlockAndInsertIfThen(is_new(builder, marks), builder.GetInsertPoint(),
                                             false, unlikely()));
  slow.SetCurrentDebugLocation(look.after->getDebugLoc());
  for (Value *line : lines) // to mark a line again does no harm
    call_keeping_registers(slow, "__assay_workingset_touch", {line});
}

void LineTouches::mark(Instruction &instruction, ArrayRef<RangeAccess> ranges) {
  BuilderAfter builder(instruction, ranges.front().before);
  Value *bytes = bytes_of(builder, ranges.front());
  SmallVector<Value *, 2> pointers;
  for (const RangeAccess &range : ranges)
    pointers.push_back(range.pointer);
  unless_touched(builder, pointers, bytes, [&](IRBuilder<> &slow) {
    for (Value *pointer : pointers)
      slow.CreateCall(hook(module_, "__assay_workingset_range"), {pointer, bytes});
  });
}

void LineTouches::mark(Instruction &instruction, const VectorAccess &access) {
  BuilderAfter builder(instruction, access.before);
  builder.CreateCall(hook(module_, "__assay_workingset_vector"), parts_of(builder, access));
}

void LineTouches::mark(Instruction &instruction, const StringAccess &access) {
  BuilderAfter builder(instruction);
  Value *limit = bytes_or_all(builder, access.limit);
  if (access.length) {
    Value *bytes = builder.CreateAdd(access.length, builder.getInt64(1));
    unless_touched(builder, access.string, bytes, [&](IRBuilder<> &slow) {
      slow.CreateCall(hook(module_, "__assay_workingset_range"), {access.string, bytes});
    });
  } else if (access.other) {
    auto call = [&](IRBuilder<> &slow) {
      slow.CreateCall(hook(module_, "__assay_workingset_compare"),
                      {access.string, access.other, limit,
                       slow.getInt32(access.stops_at_zero ? ASSAY_ACCESS_STRING : 0)});
    };
    if (access.limit)
      unless_touched(builder, {access.string, access.other}, limit, call);
    else
      unless_different(builder, access, call);
  } else {
    builder.CreateCall(hook(module_, "__assay_workingset_string"), {access.string, limit});
  }
}

void LineTouches::mark(Instruction &instruction, const MaskedAccess &access) {
  BuilderAfter builder(instruction);
  for_each_call(builder, access, [&](Value *pointer, Value *bits) {
    builder.CreateCall(hook(module_, "__assay_workingset_masked"),
                       {pointer, builder.getInt64(access.element_bytes), bits});
  });
}

void LineTouches::tick(Instruction &end, uint32_t accesses) {
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
  call_keeping_registers(call, "__assay_workingset_spent", {});
}

LineTouches::Mark LineTouches::mark_of(IRBuilder<> &builder, const TouchedByte &byte) {
  Value *dynamic = base();
  Value *address = builder.CreatePtrToInt(byte.pointer, builder.getInt64Ty());
  address = builder.CreateAdd(address, builder.getInt64((uint64_t)byte.offset));
  Value *line = builder.CreateLShr(address, Log2_64(form_.line_bytes));
  Value *place = form_.bits ? builder.CreateLShr(address, form_.shift) : line;
  place = builder.CreateAdd(place, dynamic ? dynamic : builder.getInt64(form_.base));
  Value *marks = ours(
      builder.CreateLoad(builder.getInt8Ty(), builder.CreateIntToPtr(place, builder.getPtrTy())));
  if (form_.bits) { // the line's up to the sign
    Value *bit = builder.CreateTrunc(line, builder.getInt8Ty());
    bit = builder.CreateAnd(bit, builder.getInt8(7));
    marks = builder.CreateShl(marks, builder.CreateSub(builder.getInt8(7), bit));
  }
  return {line, marks};
}

// Negative: all lines are marked.
Value *LineTouches::marks_of(IRBuilder<> &builder, ArrayRef<TouchedByte> bytes,
                             SmallVectorImpl<Value *> *lines) {
  Value *marks = builder.getInt8(0xff);
  for (const TouchedByte &byte : bytes) {
    Mark mark = mark_of(builder, byte);
    marks = builder.CreateAnd(mark.sign, marks);
    if (lines)
      lines->push_back(mark.line);
  }
  return marks;
}

// Calls if so many bytes from each pointer may lie in more than two lines, or in one that is not marked.
void LineTouches::unless_touched(IRBuilder<> &builder, ArrayRef<Value *> pointers, Value *bytes,
                                 function_ref<void(IRBuilder<> &)> call) {
  auto *constant = dyn_cast<ConstantInt>(bytes);
  if (options_.naive || (constant && constant->getValue().ugt(form_.line_bytes))) {
    call(builder);
    return;
  }
  // of no bytes, the pointer may lead anywhere: not even its mark is looked at
  Value *is_short = builder.CreateICmpULT(builder.CreateSub(bytes, builder.getInt64(1)),
                                          builder.getInt64(form_.line_bytes));
  BasicBlock *head = builder.GetInsertBlock();
  BasicBlock *tail = SplitBlock(head, builder.GetInsertPoint());
  DebugLoc location = builder.getCurrentDebugLocation();
  auto add_block = [&] { return BasicBlock::Create(builder.getContext(), "", &function_, tail); };
  BasicBlock *look = add_block(), *slow = add_block();
  head->getTerminator()->eraseFromParent();
  IRBuilder<>(head).CreateCondBr(is_short, look, slow);

  builder.SetInsertPoint(look);
  SmallVector<TouchedByte, 4> ends;
  for (Value *pointer : pointers) {
    Value *last = builder.CreateGEP(builder.getInt8Ty(), pointer,
                                    builder.CreateSub(bytes, builder.getInt64(1)));
    ends.append({{pointer, 0}, {last, 0}});
  }
  builder.CreateCondBr(is_new(builder, marks_of(builder, ends)), slow, tail, unlikely());
  builder.SetInsertPoint(slow);
  builder.SetCurrentDebugLocation(location);
  call(builder);
  builder.CreateBr(tail);
}

// Calls if two strings begin alike, or if one of their first lines is not marked.
void LineTouches::unless_different(IRBuilder<> &builder, const StringAccess &access,
                                   function_ref<void(IRBuilder<> &)> call) {
  if (options_.naive) {
    call(builder);
    return;
  }
  Value *marks = marks_of(builder, {{access.string, 0}, {access.other, 0}});
  auto first_of = [&](Value *string) {
    return ours(builder.CreateLoad(builder.getInt8Ty(), string));
  };
  Value *alike = builder.CreateICmpEQ(first_of(access.string), first_of(access.other));
  IRBuilder<> slow(SplitBlockAndInsertIfThen(builder.CreateOr(alike, is_new(builder, marks)),
                                             builder.GetInsertPoint(), false));
  slow.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
  call(slow);
}

MDNode *LineTouches::unlikely() const {
  return MDBuilder(module_.getContext()).createUnlikelyBranchWeights();
}

// The base of the shadow, where it is not a constant.
Value *LineTouches::base() {
  if (!base_ && options_.mode & ASSAY_LINES_DYNAMIC)
    base_ = load_at_entry(function_, "__assay_lines_base");
  return base_;
}

} // namespace assay::compiler::workingset
