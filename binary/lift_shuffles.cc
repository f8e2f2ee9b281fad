// Vectors that are rearranged by a pattern that is known from the instruction: shuffles, interleavings,
// shifts by bytes, permutations, blends.

#include "binary/lift_lanes.h"

namespace binary {
namespace {

Reg shuffle32(Lift &lift, Reg low, Reg high, unsigned order) {
  return lift.make3(ASSAY_UOP_lane_shuffle32, 8, low, high, ASSAY_REG_ZERO,
                    static_cast<int32_t>(order));
}

// Elements of 32 bits: of each block of 16 bytes, those that the four pairs of bits in `order` name;
// the first two of `a`, the others of `b`, which may be the same: what is read from memory is read once.
bool shuffle_words32(Lift &lift, const LanesRead &a, const LanesRead &b, unsigned order) {
  return rearrange(lift, 4, [&](unsigned lane) {
    unsigned block = lane & ~1u, pair = lane & 1 ? order >> 4 : order;
    const LanesRead &from = lane & 1 ? b : a;
    unsigned low = pair & 3, high = pair >> 2 & 3;
    return shuffle32(lift, from[block + low / 2], from[block + high / 2],
                     (low & 1) | (high & 1) << 1);
  });
}

bool shuffle_words32_of_two(Lift &lift, unsigned first, unsigned order) {
  LanesRead a(lift, first), b(lift, first + 1);
  return shuffle_words32(lift, a, b, order);
}

bool shuffle_words32_of_one(Lift &lift, unsigned order) {
  LanesRead from(lift, 1);
  return shuffle_words32(lift, from, from, order);
}

bool shuffle_words16(Lift &lift, unsigned shuffled_lane) {
  LanesRead from(lift, 1);
  auto order = static_cast<int32_t>(lift.constant(2));
  return rearrange(lift, 2, [&](unsigned lane) {
    return (lane & 1) == shuffled_lane ? lift.make3(ASSAY_UOP_lane_shuffle16, 8, from[lane],
                                                    ASSAY_REG_ZERO, ASSAY_REG_ZERO, order)
                                       : from[lane];
  });
}

// shufpd: of each block, a lane of operand 1 and one of operand 2.
bool shuffle_lanes(Lift &lift) {
  unsigned first = lift.operand_count == 4 ? 1 : 0;
  LanesRead a(lift, first), b(lift, first + 1);
  uint64_t order = lift.constant(first + 2);
  return rearrange(lift, 8, [&](unsigned lane) {
    unsigned from = (lane & ~1u) + (order >> lane & 1);
    return lane & 1 ? b[from] : a[from];
  });
}

// punpckl, punpckh, unpcklps …: of each block the low or high halves, element by element.
bool interleave(Lift &lift, unsigned element, unsigned half) {
  unsigned first = first_source(lift, 2);
  LanesRead a(lift, first), b(lift, first + 1);
  return rearrange(lift, element, [&](unsigned lane) {
    unsigned from = (lane & ~1u) + half;
    if (element == 8)
      return lane & 1 ? b[from] : a[from];
    return lift.make(lane & 1 ? ASSAY_UOP_lane_interleave_high : ASSAY_UOP_lane_interleave, element,
                     value(a[from]), value(b[from]));
  });
}

// palignr, psrldq, pslldq: bytes from `begin` on of the lanes that `lane_at` names by number in a block.
template <class LaneAt> Reg bytes_from(Lift &lift, int begin, LaneAt lane_at) {
  int number = begin >> 3, within = begin & 7;
  Reg low = lane_at(number);
  if (within == 0)
    return low;
  return lift.make3(ASSAY_UOP_lane_funnel, 8, low, lane_at(number + 1), ASSAY_REG_ZERO, within);
}

bool align_bytes(Lift &lift) {
  unsigned first = lift.operand_count == 4 ? 1 : 0;
  LanesRead high(lift, first), low(lift, first + 1);
  int begin = static_cast<int>(lift.constant(first + 2) & 0xff);
  return rearrange(lift, 1, [&](unsigned lane) {
    unsigned block = lane & ~1u;
    return bytes_from(lift, begin + (lane & 1 ? 8 : 0), [&](int number) -> Reg {
      if (number < 2)
        return low[block + static_cast<unsigned>(number)];
      return number < 4 ? high[block + static_cast<unsigned>(number) - 2] : Reg{ASSAY_REG_ZERO};
    });
  });
}

bool shift_bytes(Lift &lift, bool left) {
  unsigned first = lift.operand_count == 3 ? 1 : 0;
  LanesRead from(lift, first);
  int count = static_cast<int>(lift.constant(first + 1) & 0xff);
  count = count > 16 ? 16 : count;
  return rearrange(lift, 1, [&](unsigned lane) {
    unsigned block = lane & ~1u;
    int begin = (lane & 1 ? 8 : 0) + (left ? -count : count);
    return bytes_from(lift, begin, [&](int number) -> Reg {
      return number == 0 || number == 1 ? from[block + static_cast<unsigned>(number)]
                                        : Reg{ASSAY_REG_ZERO};
    });
  });
}

// valignd, valignq: elements from `constant` on of operand 2 and then 1.
bool align_elements(Lift &lift, unsigned element) {
  LanesRead high(lift, 1), low(lift, 2);
  unsigned lanes = lane_count(lift.operand(0)), elements = lanes * 8 / element;
  unsigned begin = static_cast<unsigned>(lift.constant(3)) % elements * element;
  return rearrange(lift, element, [&](unsigned lane) {
    return bytes_from(lift, static_cast<int>(begin + 8 * lane), [&](int number) {
      auto n = static_cast<unsigned>(number);
      return n < lanes ? low[n] : high[n - lanes];
    });
  });
}

// vpermq, vpermpd with a constant: lanes of each 32 bytes.
bool permute_lanes(Lift &lift) {
  if (!lift.is_constant(2))
    return false;
  LanesRead from(lift, 1);
  uint64_t order = lift.constant(2);
  return rearrange(
      lift, 8, [&](unsigned lane) { return from[(lane & ~3u) + (order >> 2 * (lane & 3) & 3)]; });
}

// vpermilpd, vpermilps with a constant.
bool permute_within_blocks(Lift &lift, unsigned element) {
  if (!lift.is_constant(2))
    return false;
  uint64_t order = lift.constant(2);
  LanesRead from(lift, 1);
  if (element == 4)
    return shuffle_words32(lift, from, from, static_cast<unsigned>(order));
  return rearrange(lift, 8,
                   [&](unsigned lane) { return from[(lane & ~1u) + (order >> lane & 1)]; });
}

// vperm2f128: of two operands of 32 bytes, blocks of 16.
bool permute_blocks(Lift &lift) {
  LanesRead a(lift, 1), b(lift, 2);
  uint64_t order = lift.constant(3);
  return rearrange(lift, 8, [&](unsigned lane) -> Reg {
    uint64_t half = order >> (lane & 2 ? 4 : 0);
    if (half & 8)
      return ASSAY_REG_ZERO;
    unsigned from = 2 * (half & 1) + (lane & 1);
    return half & 2 ? b[from] : a[from];
  });
}

// vshuff64x2 …: blocks of 16 bytes; the lower half of the result from operand 1, the upper from 2.
bool shuffle_blocks(Lift &lift, unsigned element) {
  LanesRead a(lift, 1), b(lift, 2);
  uint64_t order = lift.constant(3);
  unsigned blocks = lane_count(lift.operand(0)) / 2, choices = blocks == 4 ? 2 : 1;
  return rearrange(lift, element, [&](unsigned lane) {
    unsigned block = lane / 2;
    uint64_t from = order >> choices * block & (blocks - 1);
    const LanesRead &source = block < blocks / 2 ? a : b;
    return source[static_cast<unsigned>(2 * from) + (lane & 1)];
  });
}

bool duplicate_lanes(Lift &lift) { // movddup
  bool is_small = lift.is_memory(1) && lift.bytes(0) == 16;
  LanesRead from(lift, 1, is_small ? 8 : lift.bytes(1));
  return rearrange(lift, 8, [&](unsigned lane) { return from[is_small ? 0 : lane & ~1u]; });
}

bool duplicate_halves(Lift &lift, unsigned order) { // movsldup, movshdup
  LanesRead from(lift, 1);
  return rearrange(lift, 4,
                   [&](unsigned lane) { return shuffle32(lift, from[lane], from[lane], order); });
}

// Elements that a constant chooses: bit i chooses element i of operand 2.
bool blend_constant(Lift &lift, unsigned element) {
  unsigned first = lift.operand_count == 4 ? 1 : 0;
  LanesRead a(lift, first), b(lift, first + 1);
  uint64_t order = lift.constant(first + 2);
  unsigned in_lane = 8 / element;
  return rearrange(lift, element, [&](unsigned lane) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < in_lane; i++)
      if (order >> ((lane * in_lane + i) & 7) & 1)
        bits |= (~0ULL >> (64 - 8 * element)) << 8 * element * i;
    if (bits == 0)
      return a[lane];
    if (bits == ~0ULL)
      return b[lane];
    Reg chosen = lift.in_register(Operand::of(static_cast<int64_t>(bits)));
    return lift.make3(ASSAY_UOP_lane_merge, 8, a[lane], b[lane], chosen);
  });
}

// Elements whose top bit in the last operand (xmm0 in legacy form) chooses operand 2.
bool blend_by_sign(Lift &lift, unsigned element) {
  unsigned first = lift.operand_count == 4 ? 1 : 0;
  bool is_legacy = lift.decoded.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
  LanesRead a(lift, first), b(lift, first + 1);
  LanesWritten to(lift, element);
  for (unsigned lane = 0; lane < to.count(); lane++) {
    unsigned mark = lift.mark_temporaries();
    Reg control = is_legacy ? static_cast<Reg>(ASSAY_REG_LANES + lane)
                            : static_cast<Reg>(register_of(lift.operand(3).reg.value) + lane);
    Reg spread = lift.make(ASSAY_UOP_lane_spread, element, value(control));
    lift.emit3(ASSAY_UOP_lane_merge, 8, to.place(lane), a[lane], b[lane], spread);
    lift.release_temporaries(mark);
  }
  to.finish();
  return true;
}

} // namespace

bool lift_shuffles(Lift &lift) {
  unsigned last = lift.operand_count ? lift.operand_count - 1 : 0;
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_PSHUFD:
  case ZYDIS_MNEMONIC_VPSHUFD:
    return shuffle_words32_of_one(lift, static_cast<unsigned>(lift.constant(2)));
  case ZYDIS_MNEMONIC_SHUFPS:
  case ZYDIS_MNEMONIC_VSHUFPS:
    return shuffle_words32_of_two(lift, last - 2, static_cast<unsigned>(lift.constant(last)));
  case ZYDIS_MNEMONIC_SHUFPD:
  case ZYDIS_MNEMONIC_VSHUFPD: return shuffle_lanes(lift);
  case ZYDIS_MNEMONIC_PSHUFLW:
  case ZYDIS_MNEMONIC_VPSHUFLW: return shuffle_words16(lift, 0);
  case ZYDIS_MNEMONIC_PSHUFHW:
  case ZYDIS_MNEMONIC_VPSHUFHW: return shuffle_words16(lift, 1);
  case ZYDIS_MNEMONIC_PUNPCKLBW:
  case ZYDIS_MNEMONIC_VPUNPCKLBW: return interleave(lift, 1, 0);
  case ZYDIS_MNEMONIC_PUNPCKLWD:
  case ZYDIS_MNEMONIC_VPUNPCKLWD: return interleave(lift, 2, 0);
  case ZYDIS_MNEMONIC_PUNPCKLDQ:
  case ZYDIS_MNEMONIC_VPUNPCKLDQ:
  case ZYDIS_MNEMONIC_UNPCKLPS:
  case ZYDIS_MNEMONIC_VUNPCKLPS: return interleave(lift, 4, 0);
  case ZYDIS_MNEMONIC_PUNPCKLQDQ:
  case ZYDIS_MNEMONIC_VPUNPCKLQDQ:
  case ZYDIS_MNEMONIC_UNPCKLPD:
  case ZYDIS_MNEMONIC_VUNPCKLPD: return interleave(lift, 8, 0);
  case ZYDIS_MNEMONIC_PUNPCKHBW:
  case ZYDIS_MNEMONIC_VPUNPCKHBW: return interleave(lift, 1, 1);
  case ZYDIS_MNEMONIC_PUNPCKHWD:
  case ZYDIS_MNEMONIC_VPUNPCKHWD: return interleave(lift, 2, 1);
  case ZYDIS_MNEMONIC_PUNPCKHDQ:
  case ZYDIS_MNEMONIC_VPUNPCKHDQ:
  case ZYDIS_MNEMONIC_UNPCKHPS:
  case ZYDIS_MNEMONIC_VUNPCKHPS: return interleave(lift, 4, 1);
  case ZYDIS_MNEMONIC_PUNPCKHQDQ:
  case ZYDIS_MNEMONIC_VPUNPCKHQDQ:
  case ZYDIS_MNEMONIC_UNPCKHPD:
  case ZYDIS_MNEMONIC_VUNPCKHPD: return interleave(lift, 8, 1);
  case ZYDIS_MNEMONIC_PALIGNR:
  case ZYDIS_MNEMONIC_VPALIGNR: return align_bytes(lift);
  case ZYDIS_MNEMONIC_PSRLDQ:
  case ZYDIS_MNEMONIC_VPSRLDQ: return shift_bytes(lift, false);
  case ZYDIS_MNEMONIC_PSLLDQ:
  case ZYDIS_MNEMONIC_VPSLLDQ: return shift_bytes(lift, true);
  case ZYDIS_MNEMONIC_VALIGND: return align_elements(lift, 4);
  case ZYDIS_MNEMONIC_VALIGNQ: return align_elements(lift, 8);
  case ZYDIS_MNEMONIC_VPERMQ:
  case ZYDIS_MNEMONIC_VPERMPD: return permute_lanes(lift);
  case ZYDIS_MNEMONIC_VPERMILPS: return permute_within_blocks(lift, 4);
  case ZYDIS_MNEMONIC_VPERMILPD: return permute_within_blocks(lift, 8);
  case ZYDIS_MNEMONIC_VPERM2F128:
  case ZYDIS_MNEMONIC_VPERM2I128: return permute_blocks(lift);
  case ZYDIS_MNEMONIC_VSHUFF32X4:
  case ZYDIS_MNEMONIC_VSHUFI32X4: return shuffle_blocks(lift, 4);
  case ZYDIS_MNEMONIC_VSHUFF64X2:
  case ZYDIS_MNEMONIC_VSHUFI64X2: return shuffle_blocks(lift, 8);
  case ZYDIS_MNEMONIC_MOVDDUP:
  case ZYDIS_MNEMONIC_VMOVDDUP: return duplicate_lanes(lift);
  case ZYDIS_MNEMONIC_MOVSLDUP:
  case ZYDIS_MNEMONIC_VMOVSLDUP: return duplicate_halves(lift, 0);
  case ZYDIS_MNEMONIC_MOVSHDUP:
  case ZYDIS_MNEMONIC_VMOVSHDUP: return duplicate_halves(lift, 3);
  case ZYDIS_MNEMONIC_PBLENDW:
  case ZYDIS_MNEMONIC_VPBLENDW: return blend_constant(lift, 2);
  case ZYDIS_MNEMONIC_BLENDPS:
  case ZYDIS_MNEMONIC_VBLENDPS:
  case ZYDIS_MNEMONIC_VPBLENDD: return blend_constant(lift, 4);
  case ZYDIS_MNEMONIC_BLENDPD:
  case ZYDIS_MNEMONIC_VBLENDPD: return blend_constant(lift, 8);
  case ZYDIS_MNEMONIC_PBLENDVB:
  case ZYDIS_MNEMONIC_VPBLENDVB: return blend_by_sign(lift, 1);
  case ZYDIS_MNEMONIC_BLENDVPS:
  case ZYDIS_MNEMONIC_VBLENDVPS: return blend_by_sign(lift, 4);
  case ZYDIS_MNEMONIC_BLENDVPD:
  case ZYDIS_MNEMONIC_VBLENDVPD: return blend_by_sign(lift, 8);
  default: return false;
  }
}

} // namespace binary
