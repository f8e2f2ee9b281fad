// What a micro-op does: to registers, memory and control. Values come from uop_step.h; who includes this says
// what registers and memory are. C11 and C++, includable from BPF.
//
// Before including, define macros over `run`, a pointer to a state of type ASSAY_RUN_STATE:
//
//   ASSAY_RUN_STATE                               a type
//   ASSAY_RUN_GET(run, reg)                       the value of a register, by enum assay_uop_register
//   ASSAY_RUN_SET(run, reg, value)
//   ASSAY_RUN_LOAD(run, address, width, reg)      1: the register has what the memory holds; 0: refused
//   ASSAY_RUN_STORE(run, address, width, reg)     1: the memory has the low bytes of the register; 0: refused
//   ASSAY_RUN_VALUE(run, uop, a, b, c)            the value of a micro-op that has one: assay_uop_value() or the like
//   ASSAY_RUN_X87(run, uop)                       executes a micro-op of x87: assay_uop_x87() or the like
//
// and, where registers may be unknown,
//
//   ASSAY_RUN_KNOWN(run, reg)                     1 if the register has a value
//   ASSAY_RUN_FORGET(run, reg)                    the register has none from here on
//
// A value is known if all that it is made of is. What is stored from an unknown register is the includer's matter.
#pragma once

#include "abi/uop_step.h"

#ifndef ASSAY_RUN_KNOWN
#define ASSAY_RUN_KNOWN(run, reg) 1
#define ASSAY_RUN_FORGET(run, reg) ((void)0)
#endif

enum assay_run_effect {
  ASSAY_RUN_NEXT,   // goes on with the next micro-op
  ASSAY_RUN_JUMP,   // the instruction ends; control goes to `target`
  ASSAY_RUN_FAULT,  // memory was refused; nothing was changed
  ASSAY_RUN_OPAQUE, // what the instruction writes is not known; nothing was changed
  ASSAY_RUN_UNKNOWN, // an address to store at, a condition or a target is not known; nothing was changed
};

// The address that a load or store accesses.
UOP_FUNCTION uint64_t assay_run_address(const struct assay_uop *uop, uint64_t a, uint64_t b,
                                        uint64_t c) {
  uint64_t offset = (uint64_t)(int64_t)uop->i;
  if (uop->op == ASSAY_UOP_load_if || uop->op == ASSAY_UOP_store_if)
    return a + offset;
  return a + (b << (uop->shift & 63)) + c + offset;
}

UOP_FUNCTION enum assay_run_effect assay_run_uop(ASSAY_RUN_STATE *run, const struct assay_uop *uop,
                                                 uint64_t *target) {
  const int constant = uop->b == ASSAY_UOP_IMMEDIATE;
  const uint64_t a = ASSAY_RUN_GET(run, uop->a);
  const uint64_t b = constant ? (uint64_t)uop->imm : ASSAY_RUN_GET(run, uop->b);
  const uint64_t c = constant ? 0 : ASSAY_RUN_GET(run, uop->c);
  const int known = ASSAY_RUN_KNOWN(run, uop->a) &&
                    (constant || (ASSAY_RUN_KNOWN(run, uop->b) && ASSAY_RUN_KNOWN(run, uop->c)));
  switch (uop->op) {
  case ASSAY_UOP_load_if:
    if (known && !b) {
      ASSAY_RUN_SET(run, uop->dst, 0);
      return ASSAY_RUN_NEXT;
    }
    __attribute__((fallthrough));
  case ASSAY_UOP_load:
    if (!known) {
      ASSAY_RUN_FORGET(run, uop->dst);
      return ASSAY_RUN_NEXT;
    }
    return ASSAY_RUN_LOAD(run, assay_run_address(uop, a, b, c), uop->width, uop->dst)
               ? ASSAY_RUN_NEXT
               : ASSAY_RUN_FAULT;
  case ASSAY_UOP_store_if:
    if (known && !b)
      return ASSAY_RUN_NEXT;
    __attribute__((fallthrough));
  case ASSAY_UOP_store:
    if (!known)
      return ASSAY_RUN_UNKNOWN;
    return ASSAY_RUN_STORE(run, assay_run_address(uop, a, b, c), uop->width, uop->dst)
               ? ASSAY_RUN_NEXT
               : ASSAY_RUN_FAULT;
  case ASSAY_UOP_branch:
    if (!known)
      return ASSAY_RUN_UNKNOWN;
    if (!b)
      return ASSAY_RUN_NEXT;
    __attribute__((fallthrough));
  case ASSAY_UOP_jump:
    if (!known)
      return ASSAY_RUN_UNKNOWN;
    *target = a + (uint64_t)(int64_t)uop->i;
    return ASSAY_RUN_JUMP;
  case ASSAY_UOP_opaque: return ASSAY_RUN_OPAQUE;
  case ASSAY_UOP_lane_clear:
    for (unsigned i = 0; i < 8 && (i == 0 || (uop->dst + i) % 8 != 0); i++)
      ASSAY_RUN_SET(run, uop->dst + i, 0);
    return ASSAY_RUN_NEXT;
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_X87(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
  case ASSAY_UOP_x87_flags:
  case ASSAY_UOP_x87_turn: ASSAY_RUN_X87(run, uop); return ASSAY_RUN_NEXT;
  default:
    if (known)
      ASSAY_RUN_SET(run, uop->dst, ASSAY_RUN_VALUE(run, uop, a, b, c));
    else
      ASSAY_RUN_FORGET(run, uop->dst);
    return ASSAY_RUN_NEXT;
  }
}
