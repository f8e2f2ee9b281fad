// One micro-op, and the registers that micro-ops name.
//
//   0       1      2     4   6   8                          16
//   | op | width | dst | a | b | imm                         |   b is ASSAY_UOP_IMMEDIATE
//   | op | width | dst | a | b | c | shift | - | i (signed) |   otherwise
//
// Addresses of the code's own image are link-time addresses plus the register `bias`, so that micro-ops
// of a position-independent file serve every process that maps it.
#pragma once

#include <stdint.h>

enum assay_uop_code {
#define ASSAY_UOP(name, operands, expression, meaning) ASSAY_UOP_##name,
#define ASSAY_UOP_EFFECT(name, operands, expression, meaning) ASSAY_UOP_##name,
#include "abi/uops.def"
  ASSAY_UOP_COUNT
};

enum assay_uop_register {
  ASSAY_REG_RAX,
  ASSAY_REG_RCX,
  ASSAY_REG_RDX,
  ASSAY_REG_RBX,
  ASSAY_REG_RSP,
  ASSAY_REG_RBP,
  ASSAY_REG_RSI,
  ASSAY_REG_RDI,
  ASSAY_REG_R8,
  ASSAY_REG_R15 = 15,
  ASSAY_REG_FLAGS,   // CF, PF, AF, ZF, SF, OF, where RFLAGS has them; no other bit is set
  ASSAY_REG_CONTROL, // the other bits of RFLAGS, among them the direction flag
  ASSAY_REG_FS,      // base of the segment
  ASSAY_REG_GS,
  ASSAY_REG_BIAS,             // where the image lies, less where it was linked for
  ASSAY_REG_ZERO,             // always 0
  ASSAY_REG_MXCSR,            // its control bits, where it has them: rounding, FTZ, DAZ, masks
  ASSAY_REG_X87_CONTROL,      // the control word of x87: rounding, precision, masks
  ASSAY_REG_MASKS = 24,       // k0 … k7
  ASSAY_REG_TEMPORARIES = 32, // live within one instruction
  ASSAY_REG_LANES = 64,       // lane i of vector register v: + 8 * v + i
  // st(i) of x87: its significand is + 2 * i, its sign and exponent + 2 * i + 1; mm(i) is the
  // significand of st(i) once the top of the stack is 0.
  ASSAY_REG_X87 = ASSAY_REG_LANES + 32 * 8,
  ASSAY_REG_X87_TOP = ASSAY_REG_X87 + 16, // the number that st(0) has, 0 to 7
  ASSAY_REG_COUNT,
};

#define ASSAY_MXCSR_CONTROL                                                                        \
  0xffc0 // the others say which exceptions were raised, which is not followed
#define ASSAY_MXCSR_AT_START 0x1f80
#define ASSAY_X87_CONTROL_AT_START 0x37f

#define ASSAY_UOP_TEMPORARIES 32
#define ASSAY_UOP_IMMEDIATE 0xffff // as operand b: imm

struct assay_uop {
  uint8_t op;    // enum assay_uop_code
  uint8_t width; // bytes: 1, 2, 4, 8
  uint16_t dst, a, b;
  union {
    int64_t imm;
    struct {
      uint16_t c;
      uint8_t shift;
      uint8_t unused;
      int32_t i;
    };
  };
};

// Whether a micro-op of integers reads the low w bytes of its operands and nothing else.
static inline int assay_uop_reads_low_bytes(unsigned op) {
  switch (op) {
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_LOW(name, operands, expression, meaning) case ASSAY_UOP_##name:
#define ASSAY_UOP_FLAGS_LOW(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
    return 1;
  default: return 0;
  }
}

// Whether it asks flags for a condition; and for one of signed numbers.
static inline int assay_uop_is_condition(unsigned op) {
  switch (op) {
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_IF(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
    return 1;
  default: return 0;
  }
}

static inline int assay_uop_is_signed_condition(unsigned op) {
  switch (op) {
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_IF_SIGNED(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
    return 1;
  default: return 0;
  }
}

// Whether it puts the low bytes of its second operand into the first.
static inline int assay_uop_is_put(unsigned op) {
  switch (op) {
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_PUT(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
    return 1;
  default: return 0;
  }
}

// Whether it yields a value; others act on memory, control or x87.
static inline int assay_uop_is_value(unsigned op) {
  switch (op) {
#define ASSAY_UOP(name, operands, expression, meaning) case ASSAY_UOP_##name:
#define ASSAY_UOP_EFFECT(name, operands, expression, meaning)
#include "abi/uops.def"
    return 1;
  default: return 0;
  }
}

// Whether it works on the lanes of a vector.
static inline int assay_uop_is_lane(unsigned op) {
  switch (op) {
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_LANE(name, operands, expression, meaning) case ASSAY_UOP_##name:
#define ASSAY_UOP_FLOAT(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
    return 1;
  default: return 0;
  }
}

// Whether an interpreter in the kernel has it, which has no floating point and no long programs.
static inline int assay_uop_is_in_bpf(unsigned op) {
  switch (op) {
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_FLOAT(name, operands, expression, meaning) case ASSAY_UOP_##name:
#define ASSAY_UOP_X87(name, operands, expression, meaning) case ASSAY_UOP_##name:
#define ASSAY_UOP_LANE_LONG(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
  case ASSAY_UOP_x87_flags:
  case ASSAY_UOP_x87_turn: return 0;
  default: return 1;
  }
}

// Whether its result has w bytes; others have 64 bits.
static inline int assay_uop_has_width(unsigned op) {
  switch (op) {
#define ASSAY_UOP_WHOLE(name, operands, expression, meaning)
#define ASSAY_UOP_FLOAT(name, operands, expression, meaning)
#define ASSAY_UOP(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
    return 1;
  default: return 0;
  }
}

// Whether a micro-op reads mxcsr and x87_control beside its operands.
static inline int assay_uop_reads_modes(unsigned op) {
  switch (op) {
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_FLOAT(name, operands, expression, meaning) case ASSAY_UOP_##name:
#define ASSAY_UOP_X87(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
    return 1;
  default: return 0;
  }
}

#ifdef __cplusplus
static_assert(sizeof(struct assay_uop) == 16, "a micro-op is 16 bytes");
#else
_Static_assert(sizeof(struct assay_uop) == 16, "a micro-op is 16 bytes");
#endif
