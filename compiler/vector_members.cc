#include "compiler/vector_members.h"

#include <algorithm>

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace assay::compiler {
namespace {

// A loop over one field of objects loads whole lines of them, and picks the field's lanes.
SmallBitVector used_lanes(const Instruction &access, unsigned lanes) {
  if (!isa<LoadInst>(access))
    return SmallBitVector(lanes, true);
  SmallBitVector used(lanes);
  for (const User *user : access.users()) {
    if (auto *shuffle = dyn_cast<ShuffleVectorInst>(user)) {
      for (unsigned side = 0; side < 2; side++)
        if (shuffle->getOperand(side) == &access)
          for (int lane : shuffle->getShuffleMask())
            if (const int own = lane - (int)(side * lanes); own >= 0 && own < (int)lanes)
              used.set((unsigned)own);
      continue;
    }
    auto *extracted = dyn_cast<ExtractElementInst>(user);
    auto *lane = extracted ? dyn_cast<ConstantInt>(extracted->getIndexOperand()) : nullptr;
    if (!lane || lane->getValue().uge(lanes))
      return SmallBitVector(lanes, true);
    used.set((unsigned)lane->getZExtValue());
  }
  return used;
}

// Runs of leaves with equally many accesses, in one object.
void add(SmallVectorImpl<JoinedMembers> &members, LeafRange leaves, int64_t from) {
  if (!members.empty()) {
    JoinedMembers &last = members.back();
    if (last.from == from && last.leaves.first == leaves.first && last.leaves.last == leaves.last) {
      last.accesses++;
      return;
    }
    if (last.from == from && last.accesses == 1 && last.leaves.last + 1 == leaves.first) {
      last.leaves.last = leaves.last;
      return;
    }
  }
  members.push_back({leaves, 1, from});
}

} // namespace

const FixedVectorType *vector_of(const Instruction &access) {
  return getLoadStorePointerOperand(&access) ? dyn_cast<FixedVectorType>(getLoadStoreType(&access))
                                             : nullptr;
}

uint64_t lanes_used(const Instruction &access) {
  const FixedVectorType *vector = vector_of(access);
  return vector ? used_lanes(access, vector->getNumElements()).count() : 1;
}

SmallVector<JoinedMembers, 2> joined_members(const Instruction &access, const RecordLayout &record,
                                             uint64_t offset, uint64_t bytes) {
  SmallVector<JoinedMembers, 2> members;
  if (!record.size)
    return members;
  const FixedVectorType *vector = vector_of(access);
  const uint64_t lanes = vector ? vector->getNumElements() : 1, lane_bytes = bytes / lanes;
  const SmallBitVector used =
      vector ? used_lanes(access, (unsigned)lanes) : SmallBitVector(1, true);
  for (uint64_t lane = 0; lane < lanes; lane++)
    for (uint64_t at = offset + lane * lane_bytes, end = at + lane_bytes;
         used.test((unsigned)lane) && at < end;) {
      const uint64_t in_record = at % record.size, rest = record.size - in_record;
      const uint64_t here = std::min(end - at, rest);
      if (auto leaves = RecordLayouts::leaves_in(record, in_record, here))
        add(members, *leaves, (int64_t)(at - in_record) - (int64_t)offset);
      at += here;
    }
  return members;
}

} // namespace assay::compiler
