#include "compiler/called_accesses.h"

#include "llvm/IR/DerivedTypes.h"

using namespace llvm;

namespace assay::compiler {

uint32_t CalledAccesses::collect(Instruction &instruction, const TargetLibraryInfo &library,
                                 Interest interest) {
  size_t before = ranges.size() + strings.size() + masked.size();
  for (const RangeAccess &range : interesting_ranges(instruction, library, interest))
    ranges.push_back({&instruction, range});
  for (const StringAccess &string : interesting_strings(instruction, library, interest))
    strings.push_back({&instruction, string});
  if (std::optional<MaskedAccess> access = interesting_masked(instruction, interest))
    masked.push_back({&instruction, *access});
  return (uint32_t)(ranges.size() + strings.size() + masked.size() - before);
}

Value *bytes_or_all(IRBuilder<> &builder, Value *length) {
  return length ? builder.CreateZExtOrTrunc(length, builder.getInt64Ty()) : builder.getInt64(~0ULL);
}

void for_each_call(IRBuilder<> &builder, const MaskedAccess &access,
                   function_ref<void(Value *pointer, Value *bits)> call) {
  unsigned lanes = cast<FixedVectorType>(access.mask->getType())->getNumElements();
  Value *mask = builder.CreateZExt(builder.CreateBitCast(access.mask, builder.getIntNTy(lanes)),
                                   builder.getInt64Ty());
  if (access.dense) { // as many of the lowest
    Value *active = builder.CreateUnaryIntrinsic(Intrinsic::ctpop, mask);
    Value *unused = builder.CreateSub(builder.getInt64(64), active);
    Value *lowest = builder.CreateLShr(builder.getInt64(~0ULL), builder.CreateAnd(unused, 63));
    mask = builder.CreateSelect(builder.CreateIsNull(active), active, lowest);
  }
  if (!access.pointer->getType()->isVectorTy()) {
    call(access.pointer, mask);
    return;
  }
  for (unsigned lane = 0; lane < lanes; lane++)
    call(builder.CreateExtractElement(access.pointer, lane),
         builder.CreateAnd(builder.CreateLShr(mask, lane), builder.getInt64(1)));
}

} // namespace assay::compiler
