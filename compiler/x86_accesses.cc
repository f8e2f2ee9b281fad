// LLVM has hundreds of these intrinsics in a few families, which differ in the types of lanes
// alone. A family is known by its name, and the types say the rest; a list of all would have to be
// kept equal with LLVM's.
//
// Not here, because their sizes are in registers of the machine: xsave and its like, tiles (AMX). Prefetches
// and flushes of lines access nothing.

#include "compiler/x86_accesses.h"

#include <algorithm>

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/DataLayout.h"

using namespace llvm;

namespace assay::compiler {
namespace {

// The name without "llvm.x86."; empty for others.
StringRef x86_name(const IntrinsicInst &call) {
  StringRef name = call.getCalledFunction()->getName();
  return name.consume_front("llvm.x86.") ? name : StringRef();
}

uint64_t lanes_of(const Value *vector) {
  return cast<FixedVectorType>(vector->getType())->getNumElements();
}

uint64_t lane_bytes(const Value *vector) {
  return cast<FixedVectorType>(vector->getType())->getScalarSizeInBits() / 8;
}

// Of the lanes of indexes and of data there may be more than the instruction uses.
MaskedAccess indexed(Value *pointer, Value *mask, Value *index, Value *scale, Value *data,
                     bool writes) {
  MaskedAccess access = {pointer, mask, lane_bytes(data), writes, false};
  access.lanes = (unsigned)std::min(lanes_of(index), lanes_of(data));
  if (mask->getType()->isVectorTy())
    access.lanes = (unsigned)std::min<uint64_t>(access.lanes, lanes_of(mask));
  access.index = index;
  access.scale = cast<ConstantInt>(scale)->getZExtValue();
  return access;
}

MaskedAccess at(Value *pointer, Value *mask, uint64_t lanes, uint64_t bytes, bool writes) {
  MaskedAccess access = {pointer, mask, bytes, writes, false};
  access.lanes = (unsigned)lanes;
  return access;
}

} // namespace

std::optional<MaskedAccess> x86_masked(IntrinsicInst &call) {
  StringRef name = x86_name(call);
  auto argument = [&](unsigned i) { return call.getArgOperand(i); };
  bool is_512 = name.consume_front("avx512.");
  if (is_512 && name.consume_front("mask.pmov")) { // truncated lanes
    if (!name.contains(".mem."))
      return std::nullopt;
    uint64_t bytes = StringSwitch<uint64_t>(name.substr(name.find('.') + 2, 1))
                         .Case("b", 1)
                         .Case("w", 2)
                         .Default(4);
    return at(argument(0), argument(2), lanes_of(argument(1)), bytes, true);
  }
  if (is_512)
    name.consume_front("mask.");
  else if (!name.consume_front("avx2."))
    name.consume_front("avx.");
  if (name.starts_with("gather") && !name.starts_with("gatherpf"))
    return indexed(argument(1), argument(3), argument(2), argument(4), &call, false);
  if (name.starts_with("scatter") && !name.starts_with("scatterpf"))
    return indexed(argument(0), argument(1), argument(2), argument(4), argument(3), true);
  if (name.starts_with("maskload."))
    return at(argument(0), argument(1), lanes_of(&call), lane_bytes(&call), false);
  if (name.starts_with("maskstore."))
    return at(argument(0), argument(1), lanes_of(argument(2)), lane_bytes(argument(2)), true);
  if (name == "sse2.maskmov.dqu")
    return at(argument(2), argument(1), lanes_of(argument(1)), 1, true);
  return std::nullopt;
}

SmallVector<RangeAccess, 2> x86_ranges(IntrinsicInst &call) {
  constexpr int kNone = -1;
  struct Fixed {
    uint64_t bytes;
    int reads, writes; // the arguments that point there
  };
  const Fixed fixed = StringSwitch<Fixed>(x86_name(call))
                          .Cases({"sse3.ldu.dq", "vcvtneebf162ps128", "vcvtneeph2ps128",
                                  "vcvtneobf162ps128", "vcvtneoph2ps128"},
                                 {16, 0, kNone})
                          .Cases({"avx.ldu.dq.256", "vcvtneebf162ps256", "vcvtneeph2ps256",
                                  "vcvtneobf162ps256", "vcvtneoph2ps256"},
                                 {32, 0, kNone})
                          .Case("sse.ldmxcsr", {4, 0, kNone})
                          .Case("sse.stmxcsr", {4, kNone, 0})
                          .Cases({"fxrstor", "fxrstor64"}, {512, 0, kNone})
                          .Cases({"fxsave", "fxsave64"}, {512, kNone, 0})
                          .Cases({"movdir64b", "enqcmd", "enqcmds"}, {64, 1, 0})
                          .Cases({"cmpccxadd32", "aadd32", "aand32", "aor32", "axor32"}, {4, 0, 0})
                          .Cases({"cmpccxadd64", "aadd64", "aand64", "aor64", "axor64"}, {8, 0, 0})
                          .Default({0, kNone, kNone});
  SmallVector<RangeAccess, 2> ranges;
  Value *bytes = ConstantInt::get(Type::getInt64Ty(call.getContext()), fixed.bytes);
  if (fixed.writes != kNone)
    ranges.push_back({call.getArgOperand((unsigned)fixed.writes), bytes, true});
  if (fixed.reads != kNone)
    ranges.push_back({call.getArgOperand((unsigned)fixed.reads), bytes, false});
  return ranges;
}

} // namespace assay::compiler
