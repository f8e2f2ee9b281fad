// Micro-ops that tests of skeletons are made of.
#pragma once

#include "abi/uop.h"

#include <cstdint>

namespace trace {

// With a constant as its second operand.
inline assay_uop uop(unsigned op, unsigned dst, unsigned a, int64_t constant, unsigned width = 8) {
  assay_uop uop{};
  uop.op = static_cast<uint8_t>(op);
  uop.width = static_cast<uint8_t>(width);
  uop.dst = static_cast<uint16_t>(dst);
  uop.a = static_cast<uint16_t>(a);
  uop.b = ASSAY_UOP_IMMEDIATE;
  uop.imm = constant;
  return uop;
}

} // namespace trace
