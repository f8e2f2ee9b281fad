// After an access, a look at the bytes of its words; only words that are new in this sample are marked:
//
//     shrq   $2, %address
//     cmpb   $0, 0x60000000(%address)       one word: its mark is the sign
//     jns    new
//   new:                                    out of the way
//     orb    $-128, 0x60000000(%address)
//
// Of several words, their bytes are loaded at once and compared with a mask. They are set one by
// one or as a run, never with those between them: another thread may be marking these. Setting is
// no atomic operation: of two threads that mark one word one is enough, and where the sampler takes
// the mark of the same word at the same moment, that word is sampled a little later.
//
// As counters, each word of an access gets one more. As bits, a word's neighbours lie in the same
// byte: there, setting is atomic.
//
// Refused: hoisting the check of an address that a loop does not change. A loop may run for many
// samples, and words that it uses in each of them are the hot ones; checked once, they would have
// been used in one sample.
//
// Source: cache-fragmentation.txt, "Instrumentation".

#include "compiler/word_touches.h"

#include "abi/sites.h"
#include "compiler/called_accesses.h"
#include "compiler/counting.h"
#include "compiler/places.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace assay::compiler::objects {
namespace {

// The bytes of marks that the words of a mask have, as one integer.
uint64_t marks_of(uint32_t mask) {
  uint64_t marks = 0;
  for (unsigned word = 0; word < kMaxTogether; word++)
    if (mask >> word & 1)
      marks |= (uint64_t)ASSAY_WORD_TOUCHED << (8 * word);
  return marks;
}

// Words that a counter's addition reaches without a call.
constexpr uint64_t kMaxInline = 16;

} // namespace

WordTouches::WordTouches(Function &function, const ToolRequest &options)
    : function_(function), module_(*function.getParent()), options_(options),
      form_(assay_word_encoding(options.mode)) {
  if (options.mode & ASSAY_WORDS_DYNAMIC)
    base_ = load_at_entry(function_, "__assay_words_base");
}

// The number of the shadow's byte, without the base.
Value *WordTouches::place_of(IRBuilder<> &builder, Value *pointer, int64_t offset) {
  Value *address = builder.CreatePtrToInt(pointer, builder.getInt64Ty());
  if (offset)
    address = builder.CreateAdd(address, builder.getInt64((uint64_t)offset));
  if (form_.mask != ~0ULL)
    address = builder.CreateAnd(address, builder.getInt64(form_.mask));
  return form_.shift ? builder.CreateLShr(address, form_.shift) : address;
}

Value *WordTouches::at(IRBuilder<> &builder, Value *place, uint64_t offset) {
  if (base_)
    place = builder.CreateAdd(place, base_);
  else
    offset += form_.base;
  if (offset)
    place = builder.CreateAdd(place, builder.getInt64(offset));
  return builder.CreateIntToPtr(place, builder.getPtrTy());
}

// Words one by one: the sign says whether all are marked.
Value *WordTouches::any_new_byte(IRBuilder<> &builder, ArrayRef<Value *> places) {
  Value *marks = nullptr;
  for (Value *place : places) {
    Value *more =
        ours(builder.CreateAlignedLoad(builder.getInt8Ty(), at(builder, place, 0), Align(1)));
    marks = marks ? builder.CreateAnd(marks, more) : more;
  }
  return builder.CreateICmpSGE(marks, builder.getInt8(0));
}

// The marks of all are joined by one AND, as wide as the widest of them. That of a single word is extended by its sign,
// so it stands wherever another's mark does; what one reads of words that are not its own is set.
Value *WordTouches::any_missing(IRBuilder<> &builder, ArrayRef<TouchedByte> bytes,
                                ArrayRef<Value *> places) {
  auto words_of = [](const TouchedByte &byte) {
    return (unsigned)PowerOf2Ceil((unsigned)bit_width(byte.mask));
  };
  unsigned words = 0;
  uint64_t wanted = 0;
  for (const TouchedByte &byte : bytes) {
    words = std::max(words, words_of(byte));
    wanted |= marks_of(byte.mask);
  }
  Type *wide = builder.getIntNTy(words * 8);
  Value *marks = nullptr;
  for (size_t i = 0; i < places.size(); i++) {
    Type *type = builder.getIntNTy(words_of(bytes[i]) * 8);
    Value *more = ours(builder.CreateAlignedLoad(type, at(builder, places[i], 0), Align(1)));
    if (bytes[i].mask == 1)
      more = builder.CreateSExt(more, wide);
    else
      more = builder.CreateOr(builder.CreateZExt(more, wide),
                              ConstantInt::get(wide, wanted & ~marks_of(bytes[i].mask)));
    marks = marks ? builder.CreateAnd(marks, more) : more;
  }
  return builder.CreateIsNotNull(
      builder.CreateAnd(builder.CreateNot(marks), ConstantInt::get(wide, wanted)));
}

void WordTouches::set(IRBuilder<> &builder, uint32_t mask, Value *place) {
  for (unsigned word = 0; word < kMaxTogether;) {
    unsigned run = (unsigned)countr_one(mask >> word);
    if (run == 0) {
      word++;
      continue;
    }
    run = bit_floor(run);
    Type *type = builder.getIntNTy(run * 8);
    Value *pointer = at(builder, place, word);
    Value *old = ours(builder.CreateAlignedLoad(type, pointer, Align(1)));
    Value *marks = ConstantInt::get(type, marks_of((1U << run) - 1));
    ours(builder.CreateAlignedStore(builder.CreateOr(old, marks), pointer, Align(1)));
    word += run;
  }
}

void WordTouches::mark(const Check &check) {
  if (options_.mode & ASSAY_WORDS_BITS) {
    mark_bits(check);
    return;
  }
  BuilderAfter builder(*check.after);
  SmallVector<Value *, 4> places;
  for (const TouchedByte &byte : check.bytes)
    places.push_back(place_of(builder, byte.pointer, byte.offset));
  Value *is_new = all_of(check.bytes, [](const TouchedByte &byte) { return byte.mask == 1; })
                      ? any_new_byte(builder, places)
                      : any_missing(builder, check.bytes, places);
  IRBuilder<> slow(SplitBlockAndInsertIfThen(is_new, builder.GetInsertPoint(), false,
                                             unlikely(builder.getContext())));
  slow.SetCurrentDebugLocation(check.after->getDebugLoc());
  for (size_t i = 0; i < places.size(); i++)
    set(slow, check.bytes[i].mask, places[i]);
}

// Up to eight bytes of program: their bits lie in two bytes of the shadow.
Value *WordTouches::missing_bits(IRBuilder<> &builder, const TouchedByte &byte, Value *place,
                                 Value *&bits) {
  Value *address = builder.CreatePtrToInt(byte.pointer, builder.getInt64Ty());
  address = builder.CreateAdd(address, builder.getInt64((uint64_t)byte.offset));
  Value *shift =
      builder.CreateTrunc(builder.CreateAnd(address, builder.getInt64(7)), builder.getInt16Ty());
  bits = builder.CreateShl(builder.getInt16((uint16_t)byte.mask), shift);
  Value *marks =
      ours(builder.CreateAlignedLoad(builder.getInt16Ty(), at(builder, place, 0), Align(1)));
  return builder.CreateAnd(builder.CreateNot(marks), bits);
}

void WordTouches::mark_bits(const Check &check) {
  BuilderAfter builder(*check.after);
  struct Byte {
    Value *place, *bits;
  };
  SmallVector<Byte, 4> bytes;
  Value *all = builder.getInt16(0);
  for (const TouchedByte &byte : check.bytes) {
    Value *place = place_of(builder, byte.pointer, byte.offset), *bits = nullptr;
    all = builder.CreateOr(all, missing_bits(builder, byte, place, bits));
    bytes.push_back({place, bits});
  }
  IRBuilder<> slow(SplitBlockAndInsertIfThen(builder.CreateIsNotNull(all), builder.GetInsertPoint(),
                                             false, unlikely(builder.getContext())));
  slow.SetCurrentDebugLocation(check.after->getDebugLoc());
  auto set_byte = [&](Value *place, uint64_t offset, Value *bits) {
    ours(slow.CreateAtomicRMW(AtomicRMWInst::Or, at(slow, place, offset),
                              slow.CreateTrunc(bits, slow.getInt8Ty()), Align(1),
                              AtomicOrdering::Monotonic));
  };
  for (const Byte &byte : bytes) {
    set_byte(byte.place, 0, byte.bits);
    set_byte(byte.place, 1, slow.CreateLShr(byte.bits, 8));
  }
}

void WordTouches::add(IRBuilder<> &builder, Value *place, uint32_t accesses) {
  Value *pointer = at(builder, place, 0);
  Value *more = builder.getInt32(accesses);
  if (options_.exact) {
    ours(builder.CreateAtomicRMW(AtomicRMWInst::Add, pointer, more, Align(4),
                                 AtomicOrdering::Monotonic));
    return;
  }
  Value *old = ours(builder.CreateAlignedLoad(builder.getInt32Ty(), pointer, Align(4)));
  ours(builder.CreateAlignedStore(builder.CreateAdd(old, more), pointer, Align(4)));
}

// Accesses to the same words. Where alignment does not say how many these are, the last byte may lie in one more.
void WordTouches::count(const AccessGroup &group) {
  BuilderAfter builder(*group.last);
  const uint64_t bytes = (uint64_t)(group.place.last - group.place.first) + 1;
  const uint32_t accesses = group.reads + group.writes;
  if (bytes > kMaxInline * ASSAY_WORD_BYTES) {
    for (uint32_t i = 0; i < accesses; i++)
      builder.CreateCall(hook(module_, "__assay_objects_range"),
                         {group.pointer, builder.getInt64(bytes)});
    return;
  }
  const bool is_known = group.place.reach % ASSAY_WORD_BYTES == 0;
  const uint64_t words =
      is_known ? group.place.reach / ASSAY_WORD_BYTES + 1 : divideCeil(bytes, ASSAY_WORD_BYTES);
  for (uint64_t i = 0; i < words; i++)
    add(builder, place_of(builder, group.pointer, (int64_t)(i * ASSAY_WORD_BYTES)), accesses);
  if (is_known)
    return;
  Value *in_word = builder.CreateAnd(builder.CreatePtrToInt(group.pointer, builder.getInt64Ty()),
                                     builder.getInt64(3));
  Value *one_more =
      builder.CreateICmpUGT(in_word, builder.getInt64(words * ASSAY_WORD_BYTES - bytes));
  IRBuilder<> next(SplitBlockAndInsertIfThen(one_more, builder.GetInsertPoint(), false,
                                             unlikely(builder.getContext())));
  next.SetCurrentDebugLocation(builder.getCurrentDebugLocation());
  add(next, place_of(next, group.pointer, (int64_t)bytes - 1), accesses);
}

void WordTouches::mark(Instruction &instruction, const RangeAccess &range) {
  BuilderAfter builder(instruction, range.before);
  builder.CreateCall(hook(module_, "__assay_objects_range"),
                     {range.pointer, bytes_of(builder, range)});
}

void WordTouches::mark(Instruction &instruction, const VectorAccess &access) {
  BuilderAfter builder(instruction, access.before);
  builder.CreateCall(hook(module_, "__assay_objects_vector"), parts_of(builder, access));
}

void WordTouches::mark(Instruction &instruction, const StringAccess &access) {
  BuilderAfter builder(instruction);
  Value *limit = bytes_or_all(builder, access.limit);
  if (access.length)
    builder.CreateCall(hook(module_, "__assay_objects_range"),
                       {access.string, builder.CreateAdd(access.length, builder.getInt64(1))});
  else if (access.other)
    builder.CreateCall(hook(module_, "__assay_objects_compare"),
                       {access.string, access.other, limit,
                        builder.getInt32(access.stops_at_zero ? ASSAY_ACCESS_STRING : 0)});
  else
    builder.CreateCall(hook(module_, "__assay_objects_string"), {access.string, limit});
}

void WordTouches::mark(Instruction &instruction, const MaskedAccess &access) {
  BuilderAfter builder(instruction);
  for_each_call(builder, access, [&](Value *pointer, Value *bits) {
    builder.CreateCall(hook(module_, "__assay_objects_masked"),
                       {pointer, builder.getInt64(access.element_bytes), bits});
  });
}

} // namespace assay::compiler::objects
