// Vectors that are moved: whole, in part, to and from general registers, and rearranged by a pattern
// that is known from the instruction.

#include "binary/lift_lanes.h"

#include <algorithm>

namespace binary {
namespace {

// movaps, movdqu, vmovdqu8 …; `element` is what the mask counts.
bool move(Lift &lift, unsigned element) {
  LanesRead from(lift, 1);
  LanesWritten to(lift, element);
  for (unsigned lane = 0; lane < to.count(); lane++)
    to.put(lane, from[lane]);
  to.finish();
  return true;
}

// movd, movq: the other lanes become 0, in legacy form those of xmm.
bool move_low(Lift &lift) {
  unsigned width = lift.bytes(0) < lift.bytes(1) ? lift.bytes(0) : lift.bytes(1);
  if (!lift.is_register(0) || register_of(lift.operand(0).reg.value) < ASSAY_REG_LANES) {
    LanesRead from(lift, 1);
    if (lift.is_memory(0)) {
      lift.finish(0, from[0]);
    } else {
      lift.emit(ASSAY_UOP_copy, width, register_of(lift.operand(0).reg.value), value(from[0]));
    }
    return true;
  }
  width = width > 8 ? 8 : width; // movq xmm, xmm
  LanesRead from(lift, 1, width);
  LanesWritten to(lift, 8);
  Reg low = register_of(lift.operand(0).reg.value);
  lift.emit(ASSAY_UOP_copy, width, low, value(from[0]));
  lift.emit(ASSAY_UOP_copy, 8, static_cast<Reg>(low + 1), Value::of(0));
  to.finish(2);
  return true;
}

// movss, movsd: from memory the rest becomes 0; between registers it stays, or comes from operand 1.
bool move_scalar(Lift &lift, unsigned width) {
  if (lift.mask)
    return false;
  if (lift.is_memory(0)) {
    LanesRead from(lift, 1, width);
    lift.finish(0, from[0]);
    return true;
  }
  LanesWritten to(lift, width);
  Reg low = register_of(lift.operand(0).reg.value), second = static_cast<Reg>(low + 1);
  unsigned last = lift.operand_count - 1;
  LanesRead from(lift, last, width);
  if (lift.is_memory(last)) {
    lift.emit(ASSAY_UOP_copy, width, low, value(from[0]));
    lift.emit(ASSAY_UOP_copy, 8, second, Value::of(0));
  } else {
    LanesRead rest(lift, lift.operand_count == 3 ? 1 : 0);
    Reg result = from[0];
    if (width == 4)
      result = lift.make(ASSAY_UOP_put32, 8, value(rest[0]), value(from[0]));
    if (second != rest[1])
      lift.emit(ASSAY_UOP_copy, 8, second, value(rest[1]));
    lift.emit(ASSAY_UOP_copy, 8, low, value(result));
  }
  to.finish(2);
  return true;
}

// movhps, movlpd …: one lane of xmm from memory or to it. The other one stays or comes from operand 1.
bool move_lane(Lift &lift, unsigned lane) {
  if (lift.is_memory(0)) {
    LanesRead from(lift, 1);
    lift.finish(0, from[lane]);
    return true;
  }
  LanesRead from(lift, lift.operand_count - 1, 8);
  LanesRead rest(lift, lift.operand_count == 3 ? 1 : 0);
  LanesWritten to(lift, 8);
  Reg kept = rest[1 - lane];
  to.put(1 - lane, kept);
  to.put(lane, from[0]);
  to.finish(2);
  return true;
}

// movhlps, movlhps: a lane of xmm from the other lane of the last operand.
bool move_across(Lift &lift, unsigned to_lane) {
  LanesRead from(lift, lift.operand_count - 1);
  LanesRead rest(lift, lift.operand_count == 3 ? 1 : 0);
  LanesWritten to(lift, 8);
  Reg moved = lift.make(ASSAY_UOP_copy, 8, value(from[1 - to_lane]));
  to.put(1 - to_lane, rest[1 - to_lane]);
  to.put(to_lane, moved);
  to.finish(2);
  return true;
}

// Results that read any lane: computed aside, then put.
template <class Make> bool rearrange(Lift &lift, unsigned element, Make make) {
  LanesWritten to(lift, element);
  Reg results[kMostLanes];
  for (unsigned lane = 0; lane < to.count(); lane++) {
    Reg made = make(lane);
    bool is_temporary = made >= ASSAY_REG_TEMPORARIES && made < ASSAY_REG_LANES;
    results[lane] = is_temporary ? made : lift.make(ASSAY_UOP_copy, 8, value(made));
  }
  to.put_all({results, to.count()});
  to.finish();
  return true;
}

Reg shuffle32(Lift &lift, Reg low, Reg high, unsigned order) {
  return lift.make3(ASSAY_UOP_lane_shuffle32, 8, low, high, ASSAY_REG_ZERO,
                    static_cast<int32_t>(order));
}

// Elements of 32 bits: of each block of 16 bytes, those that the four pairs of bits in `order` name;
// the first two of `a`, the others of `b`.
bool shuffle_words32(Lift &lift, unsigned first, unsigned second, unsigned order) {
  LanesRead a(lift, first), b(lift, second);
  return rearrange(lift, 4, [&](unsigned lane) {
    unsigned block = lane & ~1u, pair = lane & 1 ? order >> 4 : order;
    const LanesRead &from = lane & 1 ? b : a;
    unsigned low = pair & 3, high = pair >> 2 & 3;
    return shuffle32(lift, from[block + low / 2], from[block + high / 2],
                     (low & 1) | (high & 1) << 1);
  });
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

// vbroadcastss, vpbroadcastb, …: the lowest element everywhere; `size` bytes of 16 and more are blocks.
bool broadcast(Lift &lift, unsigned size) {
  LanesRead from(lift, 1, size);
  if (size >= 8)
    return rearrange(lift, size > 8 ? 4 : 8,
                     [&](unsigned lane) { return from[lane % (size / 8)]; });
  Reg all = lift.make(ASSAY_UOP_lane_repeat, size, value(from[0]));
  LanesWritten to(lift, size);
  for (unsigned lane = 0; lane < to.count(); lane++)
    to.put(lane, all);
  to.finish();
  return true;
}

// Of a register as a whole: the decoder's size of an operand may be that of the part that is used.
unsigned register_lanes(const ZydisDecodedOperand &operand) {
  switch (ZydisRegisterGetClass(operand.reg.value)) {
  case ZYDIS_REGCLASS_ZMM: return 8;
  case ZYDIS_REGCLASS_YMM: return 4;
  default: return 2;
  }
}

// vextractf128 …: block number `constant` of operand 1.
bool extract_block(Lift &lift, unsigned block_lanes, unsigned element) {
  LanesRead from(lift, 1);
  unsigned blocks = std::max(1u, register_lanes(lift.operand(1)) / block_lanes);
  unsigned block = static_cast<unsigned>(lift.constant(2)) % blocks;
  return rearrange(lift, element, [&](unsigned lane) { return from[block * block_lanes + lane]; });
}

bool insert_block(Lift &lift, unsigned block_lanes, unsigned element) {
  LanesRead from(lift, 1), block(lift, 2);
  unsigned blocks = std::max(1u, register_lanes(lift.operand(0)) / block_lanes);
  unsigned number = static_cast<unsigned>(lift.constant(3)) % blocks;
  return rearrange(lift, element, [&](unsigned lane) {
    return lane / block_lanes == number ? block[lane % block_lanes] : from[lane];
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
  if (element == 4)
    return shuffle_words32(lift, 1, 1, static_cast<unsigned>(order));
  LanesRead from(lift, 1);
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

bool extract_element(Lift &lift, unsigned element) {
  LanesRead from(lift, 1);
  unsigned number = static_cast<unsigned>(lift.constant(2)) % (16 / element);
  Reg taken = lift.make3(ASSAY_UOP_lane_get, element, from[number * element / 8], ASSAY_REG_ZERO,
                         ASSAY_REG_ZERO, static_cast<int32_t>(number % (8 / element)));
  if (lift.is_memory(0))
    lift.finish(0, taken);
  else
    lift.emit(ASSAY_UOP_copy, 8, register_of(lift.operand(0).reg.value), value(taken));
  return true;
}

bool insert_element(Lift &lift, unsigned element) {
  unsigned first = lift.operand_count == 4 ? 1 : 0;
  LanesRead from(lift, first), put(lift, first + 1, element);
  unsigned number = static_cast<unsigned>(lift.constant(first + 2)) % (16 / element);
  return rearrange(lift, element, [&](unsigned lane) {
    if (lane != number * element / 8)
      return from[lane];
    return lift.make3(ASSAY_UOP_lane_put, element, from[lane], put[0], ASSAY_REG_ZERO,
                      static_cast<int32_t>(number % (8 / element)));
  });
}

// insertps: an element, and then zeros.
bool insert_float(Lift &lift) {
  unsigned first = lift.operand_count == 4 ? 1 : 0;
  uint64_t order = lift.constant(first + 2);
  LanesRead from(lift, first), put(lift, first + 1);
  unsigned taken = lift.is_memory(first + 1) ? 0 : order >> 6 & 3, place = order >> 4 & 3;
  Reg element = lift.make3(ASSAY_UOP_lane_get, 4, put[taken / 2], ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                           static_cast<int32_t>(taken & 1));
  return rearrange(lift, 4, [&](unsigned lane) {
    Reg result = from[lane];
    if (lane == place / 2)
      result = lift.make3(ASSAY_UOP_lane_put, 4, result, element, ASSAY_REG_ZERO,
                          static_cast<int32_t>(place & 1));
    for (unsigned half = 0; half < 2; half++)
      if (order >> (2 * lane + half) & 1)
        result = lift.make3(ASSAY_UOP_lane_put, 4, result, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                            static_cast<int32_t>(half));
    return result;
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
    Reg chosen = lift.in_register(Value::of(static_cast<int64_t>(bits)));
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

// vmaskmov, vpmaskmov: a move of the elements whose top bit in operand 1 is set.
bool masked_move(Lift &lift, unsigned element) {
  bool stores = lift.is_memory(0);
  LanesRead control(lift, 1);
  Address whole = lift.address_of(lift.operand(stores ? 0 : 2));
  Reg base = lift.temporary();
  unsigned lanes = lane_count(lift.operand(stores ? 2 : 0));
  lift.access(8 * lanes, stores);
  lift.lea(base, 8, whole);
  Reg results[kMostLanes] = {};
  for (unsigned lane = 0; lane < lanes; lane++) {
    if (!stores)
      results[lane] = lift.make(ASSAY_UOP_copy, 8, Value::of(0));
    for (unsigned i = 0; i < 8 / element; i++) {
      unsigned mark = lift.mark_temporaries();
      auto number = static_cast<int32_t>(i), offset = static_cast<int32_t>(8 * lane + i * element);
      Reg wanted =
          lift.make(ASSAY_UOP_shr, 8, value(control[lane]), Value::of(8 * element * (i + 1) - 1));
      lift.emit(ASSAY_UOP_and, 8, wanted, value(wanted), Value::of(1));
      Reg moved = lift.temporary();
      if (stores) {
        Reg from = static_cast<Reg>(register_of(lift.operand(2).reg.value) + lane);
        lift.emit3(ASSAY_UOP_lane_get, element, moved, from, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                   number);
        lift.emit3(ASSAY_UOP_store_if, element, moved, base, wanted, ASSAY_REG_ZERO, offset);
      } else {
        lift.emit3(ASSAY_UOP_load_if, element, moved, base, wanted, ASSAY_REG_ZERO, offset);
        lift.emit3(ASSAY_UOP_lane_put, element, results[lane], results[lane], moved, ASSAY_REG_ZERO,
                   number);
      }
      lift.release_temporaries(mark);
    }
  }
  if (!stores) {
    LanesWritten to(lift, element);
    to.put_all({results, lanes});
    to.finish();
  }
  return true;
}

bool clear_registers(Lift &lift, unsigned from_lane) { // vzeroupper, vzeroall
  for (unsigned v = 0; v < 16; v++)
    lift.emit(ASSAY_UOP_lane_clear, 8, static_cast<Reg>(ASSAY_REG_LANES + 8 * v + from_lane), {});
  return true;
}

bool lift_shuffles(Lift &lift) {
  unsigned last = lift.operand_count ? lift.operand_count - 1 : 0;
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_PSHUFD:
  case ZYDIS_MNEMONIC_VPSHUFD:
    return shuffle_words32(lift, 1, 1, static_cast<unsigned>(lift.constant(2)));
  case ZYDIS_MNEMONIC_SHUFPS:
  case ZYDIS_MNEMONIC_VSHUFPS:
    return shuffle_words32(lift, last - 2, last - 1, static_cast<unsigned>(lift.constant(last)));
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

bool lift_parts(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_VBROADCASTSS:
  case ZYDIS_MNEMONIC_VPBROADCASTD: return broadcast(lift, 4);
  case ZYDIS_MNEMONIC_VBROADCASTSD:
  case ZYDIS_MNEMONIC_VPBROADCASTQ: return broadcast(lift, 8);
  case ZYDIS_MNEMONIC_VPBROADCASTB: return broadcast(lift, 1);
  case ZYDIS_MNEMONIC_VPBROADCASTW: return broadcast(lift, 2);
  case ZYDIS_MNEMONIC_VBROADCASTF128:
  case ZYDIS_MNEMONIC_VBROADCASTI128:
  case ZYDIS_MNEMONIC_VBROADCASTF32X4:
  case ZYDIS_MNEMONIC_VBROADCASTI32X4: return broadcast(lift, 16);
  case ZYDIS_MNEMONIC_VEXTRACTF128:
  case ZYDIS_MNEMONIC_VEXTRACTI128:
  case ZYDIS_MNEMONIC_VEXTRACTF32X4:
  case ZYDIS_MNEMONIC_VEXTRACTI32X4: return extract_block(lift, 2, 4);
  case ZYDIS_MNEMONIC_VEXTRACTF64X2:
  case ZYDIS_MNEMONIC_VEXTRACTI64X2: return extract_block(lift, 2, 8);
  case ZYDIS_MNEMONIC_VEXTRACTF32X8:
  case ZYDIS_MNEMONIC_VEXTRACTI32X8: return extract_block(lift, 4, 4);
  case ZYDIS_MNEMONIC_VEXTRACTF64X4:
  case ZYDIS_MNEMONIC_VEXTRACTI64X4: return extract_block(lift, 4, 8);
  case ZYDIS_MNEMONIC_VINSERTF128:
  case ZYDIS_MNEMONIC_VINSERTI128:
  case ZYDIS_MNEMONIC_VINSERTF32X4:
  case ZYDIS_MNEMONIC_VINSERTI32X4: return insert_block(lift, 2, 4);
  case ZYDIS_MNEMONIC_VINSERTF64X2:
  case ZYDIS_MNEMONIC_VINSERTI64X2: return insert_block(lift, 2, 8);
  case ZYDIS_MNEMONIC_VINSERTF32X8:
  case ZYDIS_MNEMONIC_VINSERTI32X8: return insert_block(lift, 4, 4);
  case ZYDIS_MNEMONIC_VINSERTF64X4:
  case ZYDIS_MNEMONIC_VINSERTI64X4: return insert_block(lift, 4, 8);
  case ZYDIS_MNEMONIC_PEXTRB:
  case ZYDIS_MNEMONIC_VPEXTRB: return extract_element(lift, 1);
  case ZYDIS_MNEMONIC_PEXTRW:
  case ZYDIS_MNEMONIC_VPEXTRW: return extract_element(lift, 2);
  case ZYDIS_MNEMONIC_PEXTRD:
  case ZYDIS_MNEMONIC_VPEXTRD:
  case ZYDIS_MNEMONIC_EXTRACTPS:
  case ZYDIS_MNEMONIC_VEXTRACTPS: return extract_element(lift, 4);
  case ZYDIS_MNEMONIC_PEXTRQ:
  case ZYDIS_MNEMONIC_VPEXTRQ: return extract_element(lift, 8);
  case ZYDIS_MNEMONIC_PINSRB:
  case ZYDIS_MNEMONIC_VPINSRB: return insert_element(lift, 1);
  case ZYDIS_MNEMONIC_PINSRW:
  case ZYDIS_MNEMONIC_VPINSRW: return insert_element(lift, 2);
  case ZYDIS_MNEMONIC_PINSRD:
  case ZYDIS_MNEMONIC_VPINSRD: return insert_element(lift, 4);
  case ZYDIS_MNEMONIC_PINSRQ:
  case ZYDIS_MNEMONIC_VPINSRQ: return insert_element(lift, 8);
  case ZYDIS_MNEMONIC_INSERTPS:
  case ZYDIS_MNEMONIC_VINSERTPS: return insert_float(lift);
  case ZYDIS_MNEMONIC_VMASKMOVPS:
  case ZYDIS_MNEMONIC_VPMASKMOVD: return masked_move(lift, 4);
  case ZYDIS_MNEMONIC_VMASKMOVPD:
  case ZYDIS_MNEMONIC_VPMASKMOVQ: return masked_move(lift, 8);
  default: return false;
  }
}

bool touches_mmx(const Lift &lift) {
  for (unsigned i = 0; i < lift.decoded.operand_count; i++)
    if (lift.hidden[i].type == ZYDIS_OPERAND_TYPE_REGISTER) {
      auto kind = ZydisRegisterGetClass(lift.hidden[i].reg.value);
      if (kind == ZYDIS_REGCLASS_MMX || kind == ZYDIS_REGCLASS_X87)
        return true;
    }
  return false;
}

// A load under a mask would have to skip what the mask leaves out: only what is moved is known so.
bool loads_masked(const Lift &lift) {
  return lift.mask && lift.operand_count > 1 && lift.is_memory(lift.operand_count - 1);
}

// vmovdqu8 zmm{k}, [memory]: an element that is left out is not read.
bool load_masked(Lift &lift, unsigned element) {
  Address whole = lift.address_of(lift.operand(1));
  Reg base = lift.temporary();
  unsigned lanes = lane_count(lift.operand(0));
  lift.access(8 * lanes, false);
  lift.lea(base, 8, whole);
  LanesWritten to(lift, element);
  for (unsigned lane = 0; lane < lanes; lane++) {
    unsigned mark = lift.mark_temporaries();
    Reg result = lift.make(ASSAY_UOP_copy, 8, Value::of(0));
    for (unsigned i = 0; i < 8 / element; i++) {
      unsigned inner = lift.mark_temporaries();
      Reg wanted = lift.make(ASSAY_UOP_shr, 8, value(lift.mask), Value::of(lane * 8 / element + i));
      lift.emit(ASSAY_UOP_and, 8, wanted, value(wanted), Value::of(1));
      Reg loaded = lift.temporary();
      lift.emit3(ASSAY_UOP_load_if, element, loaded, base, wanted, ASSAY_REG_ZERO,
                 static_cast<int32_t>(8 * lane + i * element));
      lift.emit3(ASSAY_UOP_lane_put, element, result, result, loaded, ASSAY_REG_ZERO,
                 static_cast<int32_t>(i));
      lift.release_temporaries(inner);
    }
    to.put(lane, result);
    lift.release_temporaries(mark);
  }
  to.finish();
  return true;
}

bool move_elements(Lift &lift, unsigned element) {
  return loads_masked(lift) ? load_masked(lift, element) : move(lift, element);
}

} // namespace

bool lift_moves(Lift &lift) {
  if (touches_mmx(lift))
    return false;
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_VZEROUPPER: return clear_registers(lift, 2);
  case ZYDIS_MNEMONIC_VZEROALL: return clear_registers(lift, 0);
  case ZYDIS_MNEMONIC_MOVAPS:
  case ZYDIS_MNEMONIC_MOVUPS:
  case ZYDIS_MNEMONIC_MOVAPD:
  case ZYDIS_MNEMONIC_MOVUPD:
  case ZYDIS_MNEMONIC_MOVDQA:
  case ZYDIS_MNEMONIC_MOVDQU:
  case ZYDIS_MNEMONIC_LDDQU:
  case ZYDIS_MNEMONIC_MOVNTDQ:
  case ZYDIS_MNEMONIC_MOVNTDQA:
  case ZYDIS_MNEMONIC_MOVNTPS:
  case ZYDIS_MNEMONIC_MOVNTPD:
  case ZYDIS_MNEMONIC_VMOVDQA:
  case ZYDIS_MNEMONIC_VMOVDQU:
  case ZYDIS_MNEMONIC_VLDDQU:
  case ZYDIS_MNEMONIC_VMOVNTDQ:
  case ZYDIS_MNEMONIC_VMOVNTDQA:
  case ZYDIS_MNEMONIC_VMOVNTPS:
  case ZYDIS_MNEMONIC_VMOVNTPD:
  case ZYDIS_MNEMONIC_VMOVAPS:
  case ZYDIS_MNEMONIC_VMOVUPS:
  case ZYDIS_MNEMONIC_VMOVDQA32:
  case ZYDIS_MNEMONIC_VMOVDQU32: return move_elements(lift, 4);
  case ZYDIS_MNEMONIC_VMOVAPD:
  case ZYDIS_MNEMONIC_VMOVUPD:
  case ZYDIS_MNEMONIC_VMOVDQA64:
  case ZYDIS_MNEMONIC_VMOVDQU64: return move_elements(lift, 8);
  case ZYDIS_MNEMONIC_VMOVDQU8: return move_elements(lift, 1);
  case ZYDIS_MNEMONIC_VMOVDQU16: return move_elements(lift, 2);
  case ZYDIS_MNEMONIC_MOVD:
  case ZYDIS_MNEMONIC_VMOVD:
  case ZYDIS_MNEMONIC_MOVQ:
  case ZYDIS_MNEMONIC_VMOVQ: return move_low(lift);
  case ZYDIS_MNEMONIC_MOVSS:
  case ZYDIS_MNEMONIC_VMOVSS: return move_scalar(lift, 4);
  case ZYDIS_MNEMONIC_MOVSD:
  case ZYDIS_MNEMONIC_VMOVSD: return move_scalar(lift, 8);
  case ZYDIS_MNEMONIC_MOVHPS:
  case ZYDIS_MNEMONIC_MOVHPD:
  case ZYDIS_MNEMONIC_VMOVHPS:
  case ZYDIS_MNEMONIC_VMOVHPD: return move_lane(lift, 1);
  case ZYDIS_MNEMONIC_MOVLPS:
  case ZYDIS_MNEMONIC_MOVLPD:
  case ZYDIS_MNEMONIC_VMOVLPS:
  case ZYDIS_MNEMONIC_VMOVLPD: return move_lane(lift, 0);
  case ZYDIS_MNEMONIC_MOVHLPS:
  case ZYDIS_MNEMONIC_VMOVHLPS: return move_across(lift, 0);
  case ZYDIS_MNEMONIC_MOVLHPS:
  case ZYDIS_MNEMONIC_VMOVLHPS: return move_across(lift, 1);
  default: return !loads_masked(lift) && (lift_shuffles(lift) || lift_parts(lift));
  }
}

} // namespace binary
