// Integers in vectors.
//
// Most are one micro-op a lane. What packs, extends or shuffles reads lanes of the same block of 16
// bytes, in the order in which the manual concatenates them.

#include "binary/lift_lanes.h"

#include <optional>

namespace binary {
namespace {

struct LaneOp {
  assay_uop_code op;
  unsigned element;
};

// One micro-op of two sources a lane.
// NOLINTNEXTLINE(readability-function-size): a flat table
std::optional<LaneOp> binary_op(ZydisMnemonic mnemonic) {
#define BOTH(name, op, element)                                                                    \
  case ZYDIS_MNEMONIC_##name:                                                                      \
  case ZYDIS_MNEMONIC_V##name: return LaneOp{ASSAY_UOP_##op, element};
#define ONE(name, op, element)                                                                     \
  case ZYDIS_MNEMONIC_##name: return LaneOp{ASSAY_UOP_##op, element};
  switch (mnemonic) {
    BOTH(PADDB, lane_add, 1)
    BOTH(PADDW, lane_add, 2)
    BOTH(PADDD, lane_add, 4)
    BOTH(PADDQ, lane_add, 8)
    BOTH(PSUBB, lane_sub, 1)
    BOTH(PSUBW, lane_sub, 2)
    BOTH(PSUBD, lane_sub, 4)
    BOTH(PSUBQ, lane_sub, 8)
    BOTH(PADDSB, lane_add_saturated, 1)
    BOTH(PADDSW, lane_add_saturated, 2)
    BOTH(PSUBSB, lane_sub_saturated, 1)
    BOTH(PSUBSW, lane_sub_saturated, 2)
    BOTH(PADDUSB, lane_add_saturated_unsigned, 1)
    BOTH(PADDUSW, lane_add_saturated_unsigned, 2)
    BOTH(PSUBUSB, lane_sub_saturated_unsigned, 1)
    BOTH(PSUBUSW, lane_sub_saturated_unsigned, 2)
    BOTH(PMULLW, lane_mul, 2)
    BOTH(PMULLD, lane_mul, 4)
    ONE(VPMULLQ, lane_mul, 8)
    BOTH(PMULHW, lane_mul_high_signed, 2)
    BOTH(PMULHUW, lane_mul_high, 2)
    BOTH(PMULHRSW, lane_mul_round, 2)
    BOTH(PMULUDQ, lane_mul_even, 8)
    BOTH(PMULDQ, lane_mul_even_signed, 8)
    BOTH(PMADDWD, lane_mul_add, 4)
    BOTH(PMADDUBSW, lane_mul_add8, 2)
    BOTH(PSADBW, lane_sad, 8)
    BOTH(PAVGB, lane_average, 1)
    BOTH(PAVGW, lane_average, 2)
    BOTH(PMINUB, lane_min, 1)
    BOTH(PMINUW, lane_min, 2)
    BOTH(PMINUD, lane_min, 4)
    ONE(VPMINUQ, lane_min, 8)
    BOTH(PMAXUB, lane_max, 1)
    BOTH(PMAXUW, lane_max, 2)
    BOTH(PMAXUD, lane_max, 4)
    ONE(VPMAXUQ, lane_max, 8)
    BOTH(PMINSB, lane_min_signed, 1)
    BOTH(PMINSW, lane_min_signed, 2)
    BOTH(PMINSD, lane_min_signed, 4)
    ONE(VPMINSQ, lane_min_signed, 8)
    BOTH(PMAXSB, lane_max_signed, 1)
    BOTH(PMAXSW, lane_max_signed, 2)
    BOTH(PMAXSD, lane_max_signed, 4)
    ONE(VPMAXSQ, lane_max_signed, 8)
    BOTH(PSIGNB, lane_sign, 1)
    BOTH(PSIGNW, lane_sign, 2)
    BOTH(PSIGND, lane_sign, 4)
    BOTH(PCMPEQB, lane_equal, 1)
    BOTH(PCMPEQW, lane_equal, 2)
    BOTH(PCMPEQD, lane_equal, 4)
    BOTH(PCMPEQQ, lane_equal, 8)
    BOTH(PCMPGTB, lane_greater, 1)
    BOTH(PCMPGTW, lane_greater, 2)
    BOTH(PCMPGTD, lane_greater, 4)
    BOTH(PCMPGTQ, lane_greater, 8)
    BOTH(PAND, and, 4)
    BOTH(ANDPS, and, 4)
    BOTH(ANDPD, and, 8)
    ONE(VPANDD, and, 4)
    ONE(VPANDQ, and, 8)
    BOTH(PANDN, and_not, 4)
    BOTH(ANDNPS, and_not, 4)
    BOTH(ANDNPD, and_not, 8)
    ONE(VPANDND, and_not, 4)
    ONE(VPANDNQ, and_not, 8)
    BOTH(POR, or, 4)
    BOTH(ORPS, or, 4)
    BOTH(ORPD, or, 8)
    ONE(VPORD, or, 4)
    ONE(VPORQ, or, 8)
    BOTH(PXOR, xor, 4)
    BOTH(XORPS, xor, 4)
    BOTH(XORPD, xor, 8)
    ONE(VPXORD, xor, 4)
    ONE(VPXORQ, xor, 8)
    ONE(VPSLLVD, lane_shl_each, 4)
    ONE(VPSLLVQ, lane_shl_each, 8)
    ONE(VPSLLVW, lane_shl_each, 2)
    ONE(VPSRLVD, lane_shr_each, 4)
    ONE(VPSRLVQ, lane_shr_each, 8)
    ONE(VPSRLVW, lane_shr_each, 2)
    ONE(VPSRAVD, lane_sar_each, 4)
    ONE(VPSRAVQ, lane_sar_each, 8)
    ONE(VPSRAVW, lane_sar_each, 2)
  default: return std::nullopt;
  }
#undef BOTH
#undef ONE
}

// Bitwise micro-ops work on whole lanes, whatever the elements that a mask counts.
unsigned width_of(LaneOp op) {
  return op.op == ASSAY_UOP_and || op.op == ASSAY_UOP_or || op.op == ASSAY_UOP_xor ||
                 op.op == ASSAY_UOP_and_not || op.op == ASSAY_UOP_lane_mul_even ||
                 op.op == ASSAY_UOP_lane_mul_even_signed
             ? 8
             : op.element;
}

bool is_zeroing_idiom(const Lift &lift, LaneOp op) {
  unsigned first = first_source(lift, 2);
  bool yields_zero = op.op == ASSAY_UOP_xor || op.op == ASSAY_UOP_lane_sub;
  return yields_zero && !lift.mask && lift.is_register(first + 1) &&
         lift.operand(first).reg.value == lift.operand(first + 1).reg.value;
}

bool combine(Lift &lift, LaneOp op) {
  if (is_zeroing_idiom(lift, op)) // depends on nothing
    return lane_by_lane(lift, op.element, [&](Reg place, unsigned) {
      lift.emit(ASSAY_UOP_copy, 8, place, Operand::of(0));
    });
  unsigned first = first_source(lift, 2);
  LanesRead a(lift, first), b(lift, first + 1);
  return lane_by_lane(lift, op.element, [&](Reg place, unsigned lane) {
    lift.emit(op.op, width_of(op), place, value(a[lane]), value(b[lane]));
  });
}

// One source, and a micro-op with a small constant.
bool unary(Lift &lift, assay_uop_code op, unsigned element) {
  LanesRead from(lift, 1);
  return lane_by_lane(lift, element, [&](Reg place, unsigned lane) {
    lift.emit(op, element, place, value(from[lane]));
  });
}

// By one count for all elements: a constant, or the low lane of xmm or memory.
bool shift(Lift &lift, assay_uop_code op, unsigned element) {
  unsigned first = first_source(lift, 2);
  LanesRead from(lift, first);
  Operand count;
  if (lift.is_constant(first + 1)) {
    count = Operand::of(static_cast<int64_t>(lift.constant(first + 1) & 0xff));
  } else {
    LanesRead counts(lift, first + 1);
    count = value(lift.make(ASSAY_UOP_copy, 8, value(counts[0]))); // may be overwritten
  }
  return lane_by_lane(lift, element, [&](Reg place, unsigned lane) {
    lift.emit(op, element, place, value(from[lane]), count);
  });
}

bool rotate(Lift &lift, unsigned element, bool left) {
  LanesRead from(lift, 1);
  auto count = static_cast<int64_t>(lift.constant(2)) % (8 * element);
  return lane_by_lane(lift, element, [&](Reg place, unsigned lane) {
    lift.emit(ASSAY_UOP_lane_rol, element, place, value(from[lane]),
              Operand::of(left ? count : 8 * element - count));
  });
}

// packsswb …: of each block, the elements of operand 1 and then of operand 2, narrowed.
bool pack(Lift &lift, assay_uop_code op, unsigned element) {
  unsigned first = first_source(lift, 2);
  LanesRead a(lift, first), b(lift, first + 1);
  return rearrange(lift, element, [&](unsigned lane) {
    const LanesRead &from = lane & 1 ? b : a;
    return lift.make(op, element, value(from[lane & ~1u]), value(from[lane | 1]));
  });
}

bool shuffle_bytes(Lift &lift) {
  unsigned first = first_source(lift, 2);
  LanesRead from(lift, first), which(lift, first + 1);
  return rearrange(lift, 1, [&](unsigned lane) {
    return lift.make3(ASSAY_UOP_lane_shuffle8, 8, from[lane & ~1u], from[lane | 1], which[lane]);
  });
}

// pmovzx, pmovsx: elements of `from` bytes, as many as fit when widened to `to`.
bool extend(Lift &lift, unsigned from_bytes, unsigned to_bytes, bool is_signed) {
  unsigned lanes = lane_count(lift.operand(0)), in_lane = 8 / to_bytes * from_bytes;
  unsigned size = lanes * in_lane;
  LanesRead from(lift, 1, size < 8 && !lift.is_memory(1) ? 8 : size);
  LanesWritten to(lift, to_bytes);
  Reg results[kMaxLanes];
  for (unsigned lane = 0; lane < lanes; lane++) {
    unsigned begin = lane * in_lane;
    Reg result = lift.temporary();
    lift.emit3(is_signed ? ASSAY_UOP_lane_extend_signed : ASSAY_UOP_lane_extend, to_bytes, result,
               from[begin / 8], ASSAY_REG_ZERO, ASSAY_REG_ZERO, static_cast<int32_t>(from_bytes),
               static_cast<uint8_t>(begin % 8));
    results[lane] = result;
  }
  to.put_all({results, lanes});
  to.finish();
  return true;
}

// pmovmskb, movmskps: the top bits of all elements in a general register.
bool signs(Lift &lift, unsigned element) {
  LanesRead from(lift, 1);
  unsigned lanes = lane_count(lift.operand(1));
  Reg all = lift.make(ASSAY_UOP_lane_signs, element, value(from[0]));
  for (unsigned lane = 1; lane < lanes; lane++) {
    Reg more = lift.make(ASSAY_UOP_lane_signs, element, value(from[lane]));
    lift.emit(ASSAY_UOP_shl, 8, more, value(more), Operand::of(8 / element * lane));
    lift.emit(ASSAY_UOP_or, 8, all, value(all), value(more));
  }
  lift.emit(ASSAY_UOP_copy, 8, register_of(lift.operand(0).reg.value), value(all));
  return true;
}

// ptest: ZF if a & b is 0, CF if ~a & b is 0.
bool test(Lift &lift) {
  LanesRead a(lift, 0), b(lift, 1);
  Reg both = 0, only_b = 0;
  for (unsigned lane = 0; lane < lane_count(lift.operand(0)); lane++) {
    Reg common = lift.make(ASSAY_UOP_and, 8, value(a[lane]), value(b[lane]));
    Reg rest = lift.make(ASSAY_UOP_and_not, 8, value(a[lane]), value(b[lane]));
    if (lane == 0) {
      both = common;
      only_b = rest;
    } else {
      lift.emit(ASSAY_UOP_or, 8, both, value(both), value(common));
      lift.emit(ASSAY_UOP_or, 8, only_b, value(only_b), value(rest));
    }
  }
  lift.emit(ASSAY_UOP_flags_count, 8, ASSAY_REG_FLAGS, value(only_b), value(both));
  return true;
}

bool ternary(Lift &lift, unsigned element) {
  auto table = static_cast<int32_t>(lift.constant(3) & 0xff);
  if (table == 0 || table == 0xff) { // depends on nothing
    if (lift.mask)
      return false;
    return lane_by_lane(lift, element, [&](Reg place, unsigned) {
      lift.emit(ASSAY_UOP_copy, 8, place, Operand::of(table ? -1 : 0));
    });
  }
  LanesRead a(lift, 0), b(lift, 1), c(lift, 2);
  return lane_by_lane(lift, element, [&](Reg place, unsigned lane) {
    lift.emit3(ASSAY_UOP_lane_ternary, 8, place, a[lane], b[lane], c[lane], table);
  });
}

bool carryless(Lift &lift) {
  unsigned first = lift.operand_count == 4 ? 1 : 0;
  LanesRead a(lift, first), b(lift, first + 1);
  uint64_t order = lift.constant(first + 2);
  return rearrange(lift, 8, [&](unsigned lane) {
    unsigned block = lane & ~1u;
    return lift.make(lane & 1 ? ASSAY_UOP_carryless_high : ASSAY_UOP_carryless, 8,
                     value(a[block + (order & 1)]), value(b[block + (order >> 4 & 1)]));
  });
}

bool lift_shifts(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_PSLLW:
  case ZYDIS_MNEMONIC_VPSLLW: return shift(lift, ASSAY_UOP_lane_shl, 2);
  case ZYDIS_MNEMONIC_PSLLD:
  case ZYDIS_MNEMONIC_VPSLLD: return shift(lift, ASSAY_UOP_lane_shl, 4);
  case ZYDIS_MNEMONIC_PSLLQ:
  case ZYDIS_MNEMONIC_VPSLLQ: return shift(lift, ASSAY_UOP_lane_shl, 8);
  case ZYDIS_MNEMONIC_PSRLW:
  case ZYDIS_MNEMONIC_VPSRLW: return shift(lift, ASSAY_UOP_lane_shr, 2);
  case ZYDIS_MNEMONIC_PSRLD:
  case ZYDIS_MNEMONIC_VPSRLD: return shift(lift, ASSAY_UOP_lane_shr, 4);
  case ZYDIS_MNEMONIC_PSRLQ:
  case ZYDIS_MNEMONIC_VPSRLQ: return shift(lift, ASSAY_UOP_lane_shr, 8);
  case ZYDIS_MNEMONIC_PSRAW:
  case ZYDIS_MNEMONIC_VPSRAW: return shift(lift, ASSAY_UOP_lane_sar, 2);
  case ZYDIS_MNEMONIC_PSRAD:
  case ZYDIS_MNEMONIC_VPSRAD: return shift(lift, ASSAY_UOP_lane_sar, 4);
  case ZYDIS_MNEMONIC_VPSRAQ: return shift(lift, ASSAY_UOP_lane_sar, 8);
  case ZYDIS_MNEMONIC_VPROLD: return rotate(lift, 4, true);
  case ZYDIS_MNEMONIC_VPROLQ: return rotate(lift, 8, true);
  case ZYDIS_MNEMONIC_VPRORD: return rotate(lift, 4, false);
  case ZYDIS_MNEMONIC_VPRORQ: return rotate(lift, 8, false);
  default: return false;
  }
}

bool lift_extensions(Lift &lift) {
  switch (lift.decoded.mnemonic) {
#define EXTENSION(name, from, to)                                                                  \
  case ZYDIS_MNEMONIC_PMOVZX##name:                                                                \
  case ZYDIS_MNEMONIC_VPMOVZX##name: return extend(lift, from, to, false);                         \
  case ZYDIS_MNEMONIC_PMOVSX##name:                                                                \
  case ZYDIS_MNEMONIC_VPMOVSX##name: return extend(lift, from, to, true);
    EXTENSION(BW, 1, 2)
    EXTENSION(BD, 1, 4)
    EXTENSION(BQ, 1, 8)
    EXTENSION(WD, 2, 4)
    EXTENSION(WQ, 2, 8)
    EXTENSION(DQ, 4, 8)
#undef EXTENSION
  default: return false;
  }
}

} // namespace

bool lift_single_lanes(Lift &lift) {
  if (auto op = binary_op(lift.decoded.mnemonic))
    return combine(lift, *op);
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_PABSB:
  case ZYDIS_MNEMONIC_VPABSB: return unary(lift, ASSAY_UOP_lane_abs, 1);
  case ZYDIS_MNEMONIC_PABSW:
  case ZYDIS_MNEMONIC_VPABSW: return unary(lift, ASSAY_UOP_lane_abs, 2);
  case ZYDIS_MNEMONIC_PABSD:
  case ZYDIS_MNEMONIC_VPABSD: return unary(lift, ASSAY_UOP_lane_abs, 4);
  case ZYDIS_MNEMONIC_VPABSQ: return unary(lift, ASSAY_UOP_lane_abs, 8);
  default: return lift_shifts(lift);
  }
}

bool lift_vector(Lift &lift) {
  if (lift.operand_count && lift.is_register(0) &&
      ZydisRegisterGetClass(lift.operand(0).reg.value) == ZYDIS_REGCLASS_MASK)
    return false; // comparisons of EVEX: masks
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_PACKSSWB:
  case ZYDIS_MNEMONIC_VPACKSSWB: return pack(lift, ASSAY_UOP_lane_pack_signed, 1);
  case ZYDIS_MNEMONIC_PACKSSDW:
  case ZYDIS_MNEMONIC_VPACKSSDW: return pack(lift, ASSAY_UOP_lane_pack_signed, 2);
  case ZYDIS_MNEMONIC_PACKUSWB:
  case ZYDIS_MNEMONIC_VPACKUSWB: return pack(lift, ASSAY_UOP_lane_pack_unsigned, 1);
  case ZYDIS_MNEMONIC_PACKUSDW:
  case ZYDIS_MNEMONIC_VPACKUSDW: return pack(lift, ASSAY_UOP_lane_pack_unsigned, 2);
  case ZYDIS_MNEMONIC_PSHUFB:
  case ZYDIS_MNEMONIC_VPSHUFB: return shuffle_bytes(lift);
  case ZYDIS_MNEMONIC_PMOVMSKB:
  case ZYDIS_MNEMONIC_VPMOVMSKB: return signs(lift, 1);
  case ZYDIS_MNEMONIC_MOVMSKPS:
  case ZYDIS_MNEMONIC_VMOVMSKPS: return signs(lift, 4);
  case ZYDIS_MNEMONIC_MOVMSKPD:
  case ZYDIS_MNEMONIC_VMOVMSKPD: return signs(lift, 8);
  case ZYDIS_MNEMONIC_PTEST:
  case ZYDIS_MNEMONIC_VPTEST: return test(lift);
  case ZYDIS_MNEMONIC_VPTERNLOGD: return ternary(lift, 4);
  case ZYDIS_MNEMONIC_VPTERNLOGQ: return ternary(lift, 8);
  case ZYDIS_MNEMONIC_PCLMULQDQ:
  case ZYDIS_MNEMONIC_VPCLMULQDQ: return carryless(lift);
  case ZYDIS_MNEMONIC_PHADDD:
  case ZYDIS_MNEMONIC_VPHADDD: return add_neighbours(lift, ASSAY_UOP_lane_add, 4);
  case ZYDIS_MNEMONIC_PHSUBD:
  case ZYDIS_MNEMONIC_VPHSUBD: return add_neighbours(lift, ASSAY_UOP_lane_sub, 4);
  default: return lift_single_lanes(lift) || lift_extensions(lift);
  }
}

} // namespace binary
