// Vectors that are moved: whole, in part, under a mask, to and from general registers.
//
// What is moved is simple; what becomes of the rest of the destination is not. movd and movq clear
// the other lane of xmm; movss and movsd do so only if they load; movhps and its like keep it, or
// take it from operand 1. What lies beyond xmm is left to LanesWritten::finish().
//
// The trap: a destination that is a source, too. So move_across() copies the lane that moves before
// it puts the other one, and what exchanges lanes goes through rearrange(), which makes all of them
// first. A block's number counts blocks of the whole register: the decoder's size of an operand may
// be that of the part that is used.

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
  lift.emit(ASSAY_UOP_copy, 8, static_cast<Reg>(low + 1), Operand::of(0));
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
    lift.emit(ASSAY_UOP_copy, 8, second, Operand::of(0));
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

// vmaskmov, vpmaskmov: a move of the elements whose top bit in operand 1 is set.
bool masked_move(Lift &lift, unsigned element) {
  bool stores = lift.is_memory(0);
  LanesRead control(lift, 1);
  Address whole = lift.address_of(lift.operand(stores ? 0 : 2));
  Reg base = lift.temporary();
  unsigned lanes = lane_count(lift.operand(stores ? 2 : 0));
  lift.access_masked(8 * lanes, stores);
  lift.lea(base, 8, whole);
  Reg results[kMaxLanes] = {};
  for (unsigned lane = 0; lane < lanes; lane++) {
    if (!stores)
      results[lane] = lift.make(ASSAY_UOP_copy, 8, Operand::of(0));
    for (unsigned i = 0; i < 8 / element; i++) {
      unsigned mark = lift.mark_temporaries();
      auto number = static_cast<int32_t>(i), offset = static_cast<int32_t>(8 * lane + i * element);
      Reg wanted =
          lift.make(ASSAY_UOP_shr, 8, value(control[lane]), Operand::of(8 * element * (i + 1) - 1));
      lift.emit(ASSAY_UOP_and, 8, wanted, value(wanted), Operand::of(1));
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

// A load under a mask would have to skip what the mask leaves out: only what is moved is known so.
bool loads_masked(const Lift &lift) {
  return lift.mask && lift.operand_count > 1 && lift.is_memory(lift.operand_count - 1);
}

// vmovdqu8 zmm{k}, [memory]: an element that is left out is not read.
bool load_masked(Lift &lift, unsigned element) {
  Address whole = lift.address_of(lift.operand(1));
  Reg base = lift.temporary();
  unsigned lanes = lane_count(lift.operand(0));
  lift.access_masked(8 * lanes, false);
  lift.lea(base, 8, whole);
  LanesWritten to(lift, element);
  for (unsigned lane = 0; lane < lanes; lane++) {
    unsigned mark = lift.mark_temporaries();
    Reg result = lift.make(ASSAY_UOP_copy, 8, Operand::of(0));
    for (unsigned i = 0; i < 8 / element; i++) {
      unsigned inner = lift.mark_temporaries();
      Reg wanted =
          lift.make(ASSAY_UOP_shr, 8, value(lift.mask), Operand::of(lane * 8 / element + i));
      lift.emit(ASSAY_UOP_and, 8, wanted, value(wanted), Operand::of(1));
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

// xlat: al is what lies al bytes behind rbx.
bool translate(Lift &lift) {
  if (lift.decoded.address_width != 64 ||
      lift.decoded.attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS))
    return false;
  Address address{.base = ASSAY_REG_RBX};
  address.index = lift.make(ASSAY_UOP_and, 8, value(ASSAY_REG_RAX), Operand::of(0xff));
  const Reg found = lift.temporary();
  lift.access(1, false);
  lift.load(found, 1, address);
  lift.emit(ASSAY_UOP_put8, 8, ASSAY_REG_RAX, value(ASSAY_REG_RAX), value(found));
  return true;
}

} // namespace

bool lift_moves(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_XLAT: return translate(lift);
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
