// The accesses of calls and of masked vector instructions, as IR: how many bytes a call has
// touched, and which lanes of a vector. A mask comes in three shapes (a vector of i1, lanes whose
// signs count, an integer); all become one integer with a bit for each lane, so that the runtime
// has one function for all of them. Refused: a branch for each lane, which multiplies the code.

#include "compiler/called_accesses.h"

#include "compiler/counting.h"

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/DerivedTypes.h"

using namespace llvm;

namespace assay::compiler {

namespace {

// The mask as an integer, a bit for each lane.
Value *bits_of(IRBuilder<> &builder, const MaskedAccess &access) {
  Value *mask = access.mask;
  if (auto *vector = dyn_cast<FixedVectorType>(mask->getType())) {
    unsigned lanes = vector->getNumElements(), bits = vector->getScalarSizeInBits();
    if (bits > 1) {
      auto *integers = FixedVectorType::get(builder.getIntNTy(bits), lanes);
      mask = builder.CreateICmpSLT(builder.CreateBitCast(mask, integers),
                                   Constant::getNullValue(integers));
    }
    mask = builder.CreateBitCast(mask, builder.getIntNTy(lanes));
  }
  return builder.CreateTrunc(mask, builder.getIntNTy(access.lanes));
}

// As many bits, the lowest ones; at most 64 from `first` on.
Value *lowest(IRBuilder<> &builder, Value *count, unsigned first) {
  Value *left = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, count, builder.getInt64(first));
  left = builder.CreateBinaryIntrinsic(Intrinsic::umin, left, builder.getInt64(64));
  Value *unused = builder.CreateAnd(builder.CreateSub(builder.getInt64(64), left), 63);
  return builder.CreateSelect(builder.CreateIsNull(left), left,
                              builder.CreateLShr(builder.getInt64(~0ULL), unused));
}

// Adds an access whose length is the call's result. That is there behind the call; of an invoke,
// where it goes on if nobody else goes there.
template <typename List, typename Access>
void collect_result(List &list, CallBase &call, Access access) {
  if (!ends_block(call)) {
    list.push_back({&call, access});
    return;
  }
  auto *invoke = dyn_cast<InvokeInst>(&call);
  if (!invoke || !invoke->getNormalDest()->getSinglePredecessor())
    return;
  access.before = true;
  list.push_back({&*invoke->getNormalDest()->getFirstInsertionPt(), access});
}

// Bytes that a call tells: none if it failed.
Value *result_bytes(IRBuilder<> &builder, Value *result) {
  Value *bytes = builder.CreateSExtOrTrunc(result, builder.getInt64Ty());
  return builder.CreateBinaryIntrinsic(Intrinsic::smax, bytes, builder.getInt64(0));
}

} // namespace

uint32_t CalledAccesses::collect(Instruction &instruction, const TargetLibraryInfo &library,
                                 Interest interest) {
  const size_t before = size();
  for (const RangeAccess &range : interesting_ranges(instruction, library, interest))
    ranges.push_back({&instruction, range});
  for (const StringAccess &string : interesting_strings(instruction, library, interest))
    strings.push_back({&instruction, string});
  if (auto *call = dyn_cast<CallBase>(&instruction)) {
    if (std::optional<RangeAccess> range = interesting_io(*call, interest))
      collect_result(ranges, *call, *range);
    if (std::optional<VectorAccess> vector = interesting_vector(*call))
      collect_result(vectors, *call, *vector);
  }
  if (std::optional<MaskedAccess> access = interesting_masked(instruction, interest))
    masked.push_back({&instruction, *access});
  return (uint32_t)(size() - before);
}

Value *bytes_of(IRBuilder<> &builder, const RangeAccess &range) {
  Type *word = builder.getInt64Ty();
  if (!range.is_result)
    return bytes_or_all(builder, range.length);
  Value *bytes = result_bytes(builder, range.length);
  return range.unit ? builder.CreateMul(bytes, builder.CreateZExtOrTrunc(range.unit, word)) : bytes;
}

SmallVector<Value *, 4> parts_of(IRBuilder<> &builder, const VectorAccess &access) {
  constexpr uint64_t kVectorOfMessage = 16, kCountOfMessage = 24; // struct msghdr
  auto field = [&](uint64_t offset, Type *type) {
    return ours(builder.CreateLoad(
        type, builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), access.vector, offset)));
  };
  Type *word = builder.getInt64Ty();
  Value *bytes = result_bytes(builder, access.call);
  if (access.count)
    return {access.vector, builder.CreateZExtOrTrunc(access.count, word), bytes};
  return {field(kVectorOfMessage, builder.getPtrTy()), field(kCountOfMessage, word), bytes};
}

Value *bytes_or_all(IRBuilder<> &builder, Value *length) {
  return length ? builder.CreateZExtOrTrunc(length, builder.getInt64Ty()) : builder.getInt64(~0ULL);
}

Value *active_lanes(IRBuilder<> &builder, const MaskedAccess &access) {
  Value *mask = bits_of(builder, access);
  if (auto *constant = dyn_cast<Constant>(mask)) {
    const DataLayout &layout = builder.GetInsertBlock()->getDataLayout();
    if (auto *bits = dyn_cast<ConstantInt>(ConstantFoldConstant(constant, layout)))
      return builder.getInt64(bits->getValue().popcount());
  }
  return builder.CreateZExtOrTrunc(builder.CreateUnaryIntrinsic(Intrinsic::ctpop, mask),
                                   builder.getInt64Ty());
}

void for_each_call(IRBuilder<> &builder, const MaskedAccess &access,
                   function_ref<void(Value *pointer, Value *bits)> call) {
  Type *word = builder.getInt64Ty();
  Value *mask = bits_of(builder, access);
  if (!access.pointer->getType()->isVectorTy() && !access.index) {
    Value *active = nullptr;
    if (access.dense)
      active = builder.CreateZExtOrTrunc(
          builder.CreateUnaryIntrinsic(
              Intrinsic::ctpop,
              builder.CreateZExt(mask, builder.getIntNTy(std::max(access.lanes, 64U)))),
          word);
    for (unsigned first = 0; first < access.lanes; first += 64) {
      Value *bits =
          active ? lowest(builder, active, first)
                 : builder.CreateZExtOrTrunc(first ? builder.CreateLShr(mask, first) : mask, word);
      Value *pointer = first
                           ? builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), access.pointer,
                                                                first * access.element_bytes)
                           : access.pointer;
      call(pointer, bits);
    }
    return;
  }
  auto place = [&](unsigned lane) -> Value * {
    if (!access.index)
      return builder.CreateExtractElement(access.pointer, lane);
    Value *index = builder.CreateSExt(builder.CreateExtractElement(access.index, lane), word);
    return builder.CreatePtrAdd(access.pointer,
                                builder.CreateMul(index, builder.getInt64(access.scale)));
  };
  for (unsigned lane = 0; lane < access.lanes; lane++)
    call(place(lane),
         builder.CreateZExt(
             builder.CreateTrunc(builder.CreateLShr(mask, lane), builder.getInt1Ty()), word));
}

} // namespace assay::compiler
