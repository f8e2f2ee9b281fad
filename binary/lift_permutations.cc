// Vectors that are rearranged, counted or narrowed element by element, as another vector says.
//
// An element that is taken from anywhere would be an array access; it is a chain over the lanes of the table
// instead, lane_pick, each link of which takes what the indexes name in one of them. So data flow
// stays that of values, and an interpreter has one micro-op for a pair of lanes.

#include "binary/lift_lanes.h"

#include <bit>
#include <optional>

namespace binary {
namespace {

// Elements that `which` names among those of a table of so many lanes: table(lane).
template <class Table>
bool permute(Lift &lift, unsigned element, const LanesRead &which, unsigned table_lanes,
             Table table) {
  LanesWritten to(lift, element);
  auto bits = static_cast<uint8_t>(std::bit_width(table_lanes * (8 / element)) - 1);
  Reg results[kMaxLanes];
  for (unsigned lane = 0; lane < to.count(); lane++) {
    Reg result = lift.temporary();
    for (unsigned from = 0; from < table_lanes; from++)
      lift.emit3(ASSAY_UOP_lane_pick, element, result, from ? result : Reg{ASSAY_REG_ZERO},
                 table(from), which[lane], static_cast<int32_t>(from), bits);
    results[lane] = result;
  }
  to.put_all({results, to.count()});
  to.finish();
  return true;
}

bool permute_one(Lift &lift, unsigned element) { // vpermd …: the indexes are operand 1
  if (lift.is_constant(2))
    return false;
  LanesRead which(lift, 1), table(lift, 2);
  return permute(lift, element, which, lane_count(lift.operand(0)),
                 [&](unsigned lane) { return table[lane]; });
}

// vpermt2d: of operands 0 and 2 by 1; vpermi2d: of 1 and 2 by 0.
bool permute_two(Lift &lift, unsigned element, bool indexes_first) {
  LanesRead zero(lift, 0), one(lift, 1), second(lift, 2);
  const LanesRead &which = indexes_first ? zero : one, &first = indexes_first ? one : zero;
  unsigned lanes = lane_count(lift.operand(0));
  return permute(lift, element, which, 2 * lanes,
                 [&](unsigned lane) { return lane < lanes ? first[lane] : second[lane - lanes]; });
}

// vpermilps, vpermilpd by a vector: within blocks of 16 bytes.
bool permute_within_blocks(Lift &lift, unsigned element) {
  if (lift.is_constant(2))
    return false;
  LanesRead from(lift, 1), which(lift, 2);
  return rearrange(lift, element, [&](unsigned lane) {
    Reg number = which[lane];
    if (element == 8)
      number = lift.make(ASSAY_UOP_shr, 8, value(number), Operand::of(1));
    uint8_t bits = element == 8 ? 1 : 2;
    Reg low = lift.temporary();
    lift.emit3(ASSAY_UOP_lane_pick, element, low, ASSAY_REG_ZERO, from[lane & ~1u], number, 0,
               bits);
    lift.emit3(ASSAY_UOP_lane_pick, element, low, low, from[lane | 1], number, 1, bits);
    return low;
  });
}

bool unary(Lift &lift, assay_uop_code op, unsigned element) {
  LanesRead from(lift, 1);
  return lane_by_lane(lift, element, [&](Reg place, unsigned lane) {
    lift.emit(op, element, place, value(from[lane]));
  });
}

// vpshldvd: of operands 0 and 1 by 2; vpshldd: of 1 and 2 by a constant; rotations: of 1 and 1 by 2.
bool shift_double(Lift &lift, unsigned element, bool left, bool rotates) {
  bool by_constant = lift.operand_count == 4;
  LanesRead zero(lift, by_constant ? 1 : 0), one(lift, by_constant ? 2 : 1);
  LanesRead two(lift, by_constant ? 0 : 2);
  Reg constant = 0;
  if (by_constant) {
    constant = lift.in_register(Operand::of(static_cast<int64_t>(lift.constant(3) & 0xff)));
    constant = lift.make(ASSAY_UOP_lane_repeat, element, value(constant));
  }
  return lane_by_lane(lift, element, [&](Reg place, unsigned lane) {
    Reg a = rotates ? one[lane] : zero[lane];
    lift.emit3(left ? ASSAY_UOP_lane_shift_left : ASSAY_UOP_lane_shift_right, element, place, a,
               one[lane], by_constant ? constant : two[lane]);
  });
}

struct Narrowing {
  unsigned from, to;
  int how;
};

std::optional<Narrowing> narrowing(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
#define SIZES(sizes, from, to)                                                                     \
  case ZYDIS_MNEMONIC_VPMOV##sizes: return Narrowing{from, to, 0};                                 \
  case ZYDIS_MNEMONIC_VPMOVS##sizes: return Narrowing{from, to, 1};                                \
  case ZYDIS_MNEMONIC_VPMOVUS##sizes: return Narrowing{from, to, 3};
    SIZES(WB, 2, 1)
    SIZES(DB, 4, 1)
    SIZES(QB, 8, 1)
    SIZES(DW, 4, 2)
    SIZES(QW, 8, 2)
    SIZES(QD, 8, 4)
#undef SIZES
  default: return std::nullopt;
  }
}

bool narrow(Lift &lift, Narrowing kind) {
  LanesRead from(lift, 1);
  unsigned lanes = lift.decoded.avx.vector_length / 64u, each = 8 / kind.from * kind.to; // bytes
  LanesWritten to(lift, kind.to);
  Reg results[kMaxLanes] = {};
  unsigned written = 0;
  for (unsigned lane = 0; lane < lanes; lane++) {
    Reg part = lift.temporary();
    lift.emit3(ASSAY_UOP_lane_narrow, kind.to, part, from[lane], ASSAY_REG_ZERO, ASSAY_REG_ZERO,
               kind.how, static_cast<uint8_t>(kind.from));
    unsigned at = lane * each;
    if (at % 8 == 0) {
      results[written++] = part;
    } else {
      lift.emit(ASSAY_UOP_shl, 8, part, value(part), Operand::of(8 * (at % 8)));
      lift.emit(ASSAY_UOP_or, 8, results[written - 1], value(results[written - 1]), value(part));
    }
  }
  to.put_all({results, written});
  to.finish(written);
  return true;
}

bool broadcast_mask(Lift &lift, unsigned bytes, unsigned element) { // vpbroadcastmb2q
  Reg k = register_of(lift.operand(1).reg.value);
  Reg low = lift.make(ASSAY_UOP_copy, bytes, value(k));
  Reg all = lift.make(ASSAY_UOP_lane_repeat, element, value(low));
  return lane_by_lane(
      lift, element, [&](Reg place, unsigned) { lift.emit(ASSAY_UOP_copy, 8, place, value(all)); });
}

} // namespace

bool lift_permutations(Lift &lift) {
  if (auto kind = narrowing(lift.decoded.mnemonic))
    return narrow(lift, *kind);
  switch (lift.decoded.mnemonic) {
#define SIZE(letter, element)                                                                      \
  case ZYDIS_MNEMONIC_VPERM##letter: return permute_one(lift, element);                            \
  case ZYDIS_MNEMONIC_VPERMT2##letter: return permute_two(lift, element, false);                   \
  case ZYDIS_MNEMONIC_VPERMI2##letter: return permute_two(lift, element, true);
    SIZE(B, 1)
    SIZE(W, 2)
    SIZE(D, 4)
    SIZE(Q, 8)
    SIZE(PS, 4)
    SIZE(PD, 8)
#undef SIZE
  case ZYDIS_MNEMONIC_VPERMILPS: return permute_within_blocks(lift, 4);
  case ZYDIS_MNEMONIC_VPERMILPD: return permute_within_blocks(lift, 8);
  case ZYDIS_MNEMONIC_VPOPCNTB: return unary(lift, ASSAY_UOP_lane_ones, 1);
  case ZYDIS_MNEMONIC_VPOPCNTW: return unary(lift, ASSAY_UOP_lane_ones, 2);
  case ZYDIS_MNEMONIC_VPOPCNTD: return unary(lift, ASSAY_UOP_lane_ones, 4);
  case ZYDIS_MNEMONIC_VPOPCNTQ: return unary(lift, ASSAY_UOP_lane_ones, 8);
  case ZYDIS_MNEMONIC_VPLZCNTD: return unary(lift, ASSAY_UOP_lane_zeros, 4);
  case ZYDIS_MNEMONIC_VPLZCNTQ: return unary(lift, ASSAY_UOP_lane_zeros, 8);
#define SIZE(letter, element)                                                                      \
  case ZYDIS_MNEMONIC_VPSHLD##letter:                                                              \
  case ZYDIS_MNEMONIC_VPSHLDV##letter: return shift_double(lift, element, true, false);            \
  case ZYDIS_MNEMONIC_VPSHRD##letter:                                                              \
  case ZYDIS_MNEMONIC_VPSHRDV##letter: return shift_double(lift, element, false, false);
    SIZE(W, 2)
    SIZE(D, 4)
    SIZE(Q, 8)
#undef SIZE
  case ZYDIS_MNEMONIC_VPROLVD: return shift_double(lift, 4, true, true);
  case ZYDIS_MNEMONIC_VPROLVQ: return shift_double(lift, 8, true, true);
  case ZYDIS_MNEMONIC_VPRORVD: return shift_double(lift, 4, false, true);
  case ZYDIS_MNEMONIC_VPRORVQ: return shift_double(lift, 8, false, true);
  case ZYDIS_MNEMONIC_VPBROADCASTMB2Q: return broadcast_mask(lift, 1, 8);
  case ZYDIS_MNEMONIC_VPBROADCASTMW2D: return broadcast_mask(lift, 2, 4);
  default: return false;
  }
}

} // namespace binary
