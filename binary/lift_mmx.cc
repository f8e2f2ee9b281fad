// MMX: vectors of 8 bytes in the significands of x87's registers.
//
// mm(i) is the register that has the number i, not the one i places below the top of the stack; so each
// instruction first turns the stack until both are the same, which changes nothing in programs that keep x87
// and MMX apart. The exponent of a register that is written becomes all ones. Then a vector of one
// lane is as others are. Conversions from and to floats are opaque.

#include "binary/lift_lanes.h"

namespace binary {
namespace {

bool is_mmx(const ZydisDecodedOperand &operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
         ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_MMX;
}

bool move(Lift &lift, unsigned width) { // movd, movq, movntq
  LanesRead from(lift, 1, width);
  if (lift.is_memory(0))
    lift.finish(0, from[0]);
  else
    lift.emit(ASSAY_UOP_copy, width, register_of(lift.operand(0).reg.value), value(from[0]));
  return true;
}

bool move_to_vector(Lift &lift) { // movq2dq
  Reg to = register_of(lift.operand(0).reg.value);
  lift.emit(ASSAY_UOP_copy, 8, to, value(register_of(lift.operand(1).reg.value)));
  lift.emit(ASSAY_UOP_copy, 8, static_cast<Reg>(to + 1), Operand::of(0));
  return true;
}

// One lane made of operands 0 and 1.
bool both(Lift &lift, assay_uop_code op, unsigned element) {
  LanesRead from(lift, 1, lift.is_memory(1) ? lift.bytes(1) : 8);
  Reg to = register_of(lift.operand(0).reg.value);
  lift.emit(op, element, to, value(to), value(from[0]));
  return true;
}

bool lift_moves_of_mmx(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_MOVD:
    return move(lift, lift.bytes(0) < lift.bytes(1) ? lift.bytes(0) : lift.bytes(1));
  case ZYDIS_MNEMONIC_MOVQ:
  case ZYDIS_MNEMONIC_MOVNTQ:
  case ZYDIS_MNEMONIC_MOVDQ2Q: return move(lift, 8);
  case ZYDIS_MNEMONIC_MOVQ2DQ: return move_to_vector(lift);
  case ZYDIS_MNEMONIC_PEXTRW: {
    LanesRead from(lift, 1);
    lift.emit3(ASSAY_UOP_lane_get, 2, register_of(lift.operand(0).reg.value), from[0],
               ASSAY_REG_ZERO, ASSAY_REG_ZERO, static_cast<int32_t>(lift.constant(2) & 3));
    return true;
  }
  case ZYDIS_MNEMONIC_PINSRW: {
    LanesRead from(lift, 1, 2);
    Reg to = register_of(lift.operand(0).reg.value);
    lift.emit3(ASSAY_UOP_lane_put, 2, to, to, from[0], ASSAY_REG_ZERO,
               static_cast<int32_t>(lift.constant(2) & 3));
    return true;
  }
  case ZYDIS_MNEMONIC_PMOVMSKB:
    lift.emit(ASSAY_UOP_lane_signs, 1, register_of(lift.operand(0).reg.value),
              value(register_of(lift.operand(1).reg.value)));
    return true;
  case ZYDIS_MNEMONIC_PSHUFW: {
    LanesRead from(lift, 1);
    lift.emit3(ASSAY_UOP_lane_shuffle16, 8, register_of(lift.operand(0).reg.value), from[0],
               ASSAY_REG_ZERO, ASSAY_REG_ZERO, static_cast<int32_t>(lift.constant(2)));
    return true;
  }
  default: return false;
  }
}

bool lift_rearranged(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_PACKSSWB: return both(lift, ASSAY_UOP_lane_pack_signed, 1);
  case ZYDIS_MNEMONIC_PACKSSDW: return both(lift, ASSAY_UOP_lane_pack_signed, 2);
  case ZYDIS_MNEMONIC_PACKUSWB: return both(lift, ASSAY_UOP_lane_pack_unsigned, 1);
  case ZYDIS_MNEMONIC_PUNPCKLBW: return both(lift, ASSAY_UOP_lane_interleave, 1);
  case ZYDIS_MNEMONIC_PUNPCKLWD: return both(lift, ASSAY_UOP_lane_interleave, 2);
  case ZYDIS_MNEMONIC_PUNPCKLDQ: return both(lift, ASSAY_UOP_lane_interleave, 4);
  case ZYDIS_MNEMONIC_PUNPCKHBW: return both(lift, ASSAY_UOP_lane_interleave_high, 1);
  case ZYDIS_MNEMONIC_PUNPCKHWD: return both(lift, ASSAY_UOP_lane_interleave_high, 2);
  case ZYDIS_MNEMONIC_PUNPCKHDQ: return both(lift, ASSAY_UOP_lane_interleave_high, 4);
  case ZYDIS_MNEMONIC_PSHUFB: {
    LanesRead which(lift, 1);
    Reg to = register_of(lift.operand(0).reg.value);
    lift.emit3(ASSAY_UOP_lane_shuffle8, 8, to, to, to, which[0]);
    return true;
  }
  case ZYDIS_MNEMONIC_PALIGNR: {
    LanesRead low(lift, 1);
    Reg to = register_of(lift.operand(0).reg.value);
    auto by = static_cast<int32_t>(lift.constant(2) & 0xff);
    if (by >= 16)
      lift.emit(ASSAY_UOP_copy, 8, to, Operand::of(0));
    else
      lift.emit3(ASSAY_UOP_lane_funnel, 8, to, by < 8 ? low[0] : to,
                 by < 8 ? to : Reg{ASSAY_REG_ZERO}, ASSAY_REG_ZERO, by & 7);
    return true;
  }
  default: return false;
  }
}

} // namespace

bool touches_mmx(const Lift &lift) {
  for (unsigned i = 0; i < lift.decoded.operand_count; i++)
    if (is_mmx(lift.hidden[i]))
      return true;
  return false;
}

bool lift_mmx(Lift &lift) {
  turn_to_bottom(lift);
  if (!lift_moves_of_mmx(lift) && !lift_rearranged(lift) && !lift_single_lanes(lift))
    return false;
  for (unsigned i = 0; i < lift.decoded.operand_count; i++)
    if (is_mmx(lift.hidden[i]) && lift.hidden[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
      lift.emit(ASSAY_UOP_copy, 8, static_cast<Reg>(register_of(lift.hidden[i].reg.value) + 1),
                Operand::of(0xffff));
  return true;
}

} // namespace binary
