// Alignment is what makes places: two constant offsets from one base that is a multiple of A lie in one
// block of A bytes if they lie in the same A bytes.

#include "compiler/places.h"

#include <algorithm>

#include "llvm/IR/Instruction.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace assay::compiler {

Place place_of(const Access &access, const DataLayout &layout, uint64_t block_bytes) {
  APInt offset(layout.getIndexTypeSizeInBits(access.pointer->getType()), 0);
  Value *base = const_cast<Value *>(
      access.pointer->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true));
  int64_t bytes = offset.getSExtValue();
  uint64_t align = commonAlignment(access.align, (uint64_t)bytes).value();
  align = std::max(align, base->getPointerAlignment(layout).value());
  align = std::min(align, block_bytes);
  int64_t more = (int64_t)std::max<uint64_t>(access.bytes, 1) - 1; // of a scalable vector, none
  auto granules = [&](int64_t from, uint64_t size) {
    return (uint64_t)(divideFloorSigned(from + more, (int64_t)size) -
                      divideFloorSigned(from, (int64_t)size)) *
           size;
  };
  uint64_t own = std::min(access.align.value(), block_bytes);
  return {base, align, bytes, bytes + more,
          own > align ? granules(0, own) : granules(bytes, align)};
}

BuilderAfter::BuilderAfter(Instruction &instruction, bool before)
    : IRBuilder<>(instruction.getParent(), before || ends_block(instruction)
                                               ? instruction.getIterator()
                                               : std::next(instruction.getIterator())) {
  SetCurrentDebugLocation(instruction.getDebugLoc());
}

} // namespace assay::compiler
