// The micro-ops as functions: op_NAME(a, b, c, w, shift, i), for those that skeletons compute with.
// What each means is in abi/uops.def.
#pragma once

#include "abi/uop_integer.h"

#define Z(x) ((uint64_t)(x) & uop_mask(w))
#define S(x) uop_signed((uint64_t)(x), w)
#define MICRO_OP(name, result)                                                                     \
  static inline uint64_t op_##name(uint64_t a, uint64_t b, uint64_t c, unsigned w, unsigned shift, \
                                   int32_t i) {                                                    \
    (void)a, (void)b, (void)c, (void)w, (void)shift, (void)i;                                      \
    return (uint64_t)(result);                                                                     \
  }
#define ASSAY_UOP(name, operands, expression, meaning) MICRO_OP(name, Z(expression))
#define ASSAY_UOP_WHOLE(name, operands, expression, meaning) MICRO_OP(name, expression)
#define ASSAY_UOP_LANE(name, operands, expression, meaning)
#define ASSAY_UOP_FLOAT(name, operands, expression, meaning)
#include "abi/uops.def"
#undef MICRO_OP
#undef Z
#undef S

// One without shift and constant.
#define OP(name, bytes, a, b, c) op_##name(a, b, c, bytes, 0, 0)
