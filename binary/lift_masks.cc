// The mask registers of AVX-512, and what compares vectors into them.
//
// A mask has one bit an element, but a compare of two lanes yields whole elements, all ones or
// zero. So lane_signs takes the top bit of each element, and the bits of all lanes are put side by
// side in one register, which becomes operand 0 only at the end. Under a write mask, bits of
// elements that are not compared become 0; they do not keep what they were. The other way,
// lane_mask makes whole elements of a lane's bits.
//
// Predicates of integers from 4 on are the contrary of the first four, so they need one `not` more
// and no compares of their own. A shift of a mask by its width or more yields 0; the micro-op for
// general registers would not, so this is decided here.

#include "binary/lift_lanes.h"

#include <optional>

namespace binary {
namespace {

constexpr Reg kFlagsRegister = ASSAY_REG_FLAGS;

// The name of an instruction on masks without its size: op and bytes.
struct MaskOp {
  assay_uop_code op;
  unsigned bytes;
  bool complemented = false;
};

std::optional<MaskOp> logic_op(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
#define SIZES(name, op, complemented)                                                              \
  case ZYDIS_MNEMONIC_##name##B: return MaskOp{ASSAY_UOP_##op, 1, complemented};                   \
  case ZYDIS_MNEMONIC_##name##W: return MaskOp{ASSAY_UOP_##op, 2, complemented};                   \
  case ZYDIS_MNEMONIC_##name##D: return MaskOp{ASSAY_UOP_##op, 4, complemented};                   \
  case ZYDIS_MNEMONIC_##name##Q: return MaskOp{ASSAY_UOP_##op, 8, complemented};
    SIZES(KAND, and, false)
    SIZES(KANDN, and_not, false)
    SIZES(KOR, or, false)
    SIZES(KXOR, xor, false)
    SIZES(KXNOR, xor, true)
    SIZES(KADD, add, false)
    SIZES(KSHIFTL, shl, false)
    SIZES(KSHIFTR, shr, false)
#undef SIZES
  default: return std::nullopt;
  }
}

bool combine(Lift &lift, MaskOp op) {
  Reg a = register_of(lift.operand(1).reg.value), to = register_of(lift.operand(0).reg.value);
  Operand b;
  if (lift.is_constant(2)) { // shifts
    uint64_t count = lift.constant(2) & 0xff;
    if (count >= uint64_t{8} * op.bytes) {
      lift.emit(ASSAY_UOP_copy, 8, to, Operand::of(0));
      return true;
    }
    b = Operand::of(static_cast<int64_t>(count));
  } else {
    b = value(register_of(lift.operand(2).reg.value));
  }
  Reg result = lift.make(op.op, op.bytes, value(a), b);
  lift.emit(op.complemented ? ASSAY_UOP_not : ASSAY_UOP_copy, op.bytes, to, value(result));
  return true;
}

bool move(Lift &lift, unsigned bytes) {
  if (lift.is_memory(0)) {
    lift.finish(0, register_of(lift.operand(1).reg.value));
    return true;
  }
  Reg from = lift.is_memory(1) ? lift.read_register(1) : register_of(lift.operand(1).reg.value);
  lift.emit(ASSAY_UOP_copy, bytes, register_of(lift.operand(0).reg.value), value(from));
  return true;
}

// kortest: ZF if a | b is 0, CF if it is all ones. ktest: ZF if a & b is 0, CF if ~a & b is 0.
bool test(Lift &lift, unsigned bytes, bool with_or) {
  Reg a = register_of(lift.operand(0).reg.value), b = register_of(lift.operand(1).reg.value);
  Reg one = lift.make(with_or ? ASSAY_UOP_or : ASSAY_UOP_and, bytes, value(a), value(b));
  Reg other = with_or ? lift.make(ASSAY_UOP_not, bytes, value(one))
                      : lift.make(ASSAY_UOP_and_not, bytes, value(a), value(b));
  lift.emit(ASSAY_UOP_flags_count, bytes, kFlagsRegister, value(other), value(one));
  return true;
}

bool unpack(Lift &lift, unsigned bytes) {
  Reg high = register_of(lift.operand(1).reg.value), low = register_of(lift.operand(2).reg.value);
  Reg cut = lift.make(ASSAY_UOP_copy, bytes, value(low));
  Reg shifted = lift.make(ASSAY_UOP_shl, 2 * bytes, value(high), Operand::of(8 * bytes));
  lift.emit(ASSAY_UOP_or, 2 * bytes, register_of(lift.operand(0).reg.value), value(cut),
            value(shifted));
  return true;
}

// Gathers one bit an element into operand 0, those only whose bit in the mask is set.
template <class Make> bool into_mask(Lift &lift, unsigned lanes, unsigned element, Make make) {
  Reg all = 0;
  for (unsigned lane = 0; lane < lanes; lane++) {
    unsigned mark = lift.mark_temporaries();
    if (lane == 0)
      all = lift.temporary();
    Reg compared = make(lane);
    Reg bits = lane == 0 ? all : lift.temporary();
    lift.emit(ASSAY_UOP_lane_signs, element, bits, value(compared));
    if (lane == 0)
      continue;
    lift.emit(ASSAY_UOP_shl, 8, bits, value(bits), Operand::of(8 / element * lane));
    lift.emit(ASSAY_UOP_or, 8, all, value(all), value(bits));
    lift.release_temporaries(mark);
  }
  Reg to = register_of(lift.operand(0).reg.value);
  if (lift.mask)
    lift.emit(ASSAY_UOP_and, 8, to, value(all), value(lift.mask));
  else
    lift.emit(ASSAY_UOP_copy, 8, to, value(all));
  return true;
}

// Integers: 0 equal, 1 less, 2 less or equal, 3 never, 4 … 7 the contrary.
bool compare(Lift &lift, unsigned element, bool is_signed, unsigned predicate) {
  LanesRead a(lift, 1), b(lift, 2);
  return into_mask(lift, lane_count(lift.operand(1)), element, [&](unsigned lane) {
    Reg x = a[lane], y = b[lane], result;
    switch (predicate & 3) {
    case 0: result = lift.make(ASSAY_UOP_lane_equal, element, value(x), value(y)); break;
    case 1:
      result = is_signed ? lift.make(ASSAY_UOP_lane_greater, element, value(y), value(x))
                         : lift.make(ASSAY_UOP_lane_below, element, value(x), value(y));
      break;
    case 2: // not y < x
      result = is_signed ? lift.make(ASSAY_UOP_lane_greater, element, value(x), value(y))
                         : lift.make(ASSAY_UOP_lane_below, element, value(y), value(x));
      result = lift.make(ASSAY_UOP_not, 8, value(result));
      break;
    default: result = lift.make(ASSAY_UOP_copy, 8, Operand::of(0));
    }
    return predicate & 4 ? lift.make(ASSAY_UOP_not, 8, value(result)) : result;
  });
}

bool test_vectors(Lift &lift, unsigned element, bool is_zero) {
  LanesRead a(lift, 1), b(lift, 2);
  return into_mask(lift, lane_count(lift.operand(1)), element, [&](unsigned lane) {
    Reg common = lift.make(ASSAY_UOP_and, 8, value(a[lane]), value(b[lane]));
    Reg zero = lift.make(ASSAY_UOP_lane_equal, element, value(common), value(ASSAY_REG_ZERO));
    return is_zero ? zero : lift.make(ASSAY_UOP_not, 8, value(zero));
  });
}

bool compare_floats(Lift &lift, unsigned element) {
  if (ZydisRegisterGetClass(lift.operand(0).reg.value) != ZYDIS_REGCLASS_MASK)
    return false;
  LanesRead a(lift, 1), b(lift, 2);
  auto predicate = static_cast<int32_t>(lift.constant(3) & 0x1f);
  return into_mask(lift, lane_count(lift.operand(1)), element, [&](unsigned lane) {
    return lift.make3(ASSAY_UOP_float_compare, element, a[lane], b[lane], ASSAY_REG_ZERO,
                      predicate);
  });
}

bool from_mask(Lift &lift, unsigned element) { // vpmovm2b
  Reg k = register_of(lift.operand(1).reg.value);
  LanesWritten to(lift, element);
  Reg base = register_of(lift.operand(0).reg.value);
  for (unsigned lane = 0; lane < to.count(); lane++)
    lift.emit3(ASSAY_UOP_lane_mask, element, static_cast<Reg>(base + lane), k, ASSAY_REG_ZERO,
               ASSAY_REG_ZERO, static_cast<int32_t>(lane * 8 / element));
  to.finish();
  return true;
}

bool blend(Lift &lift, unsigned element) {
  LanesRead a(lift, 1), b(lift, 2);
  LanesWritten to(lift, element);
  Reg base = register_of(lift.operand(0).reg.value);
  for (unsigned lane = 0; lane < to.count(); lane++) {
    unsigned mark = lift.mark_temporaries();
    Reg place = static_cast<Reg>(base + lane);
    if (!lift.mask) {
      lift.emit(ASSAY_UOP_copy, 8, place, value(b[lane]));
      continue;
    }
    Reg chosen = lift.make3(ASSAY_UOP_lane_mask, element, lift.mask, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                            static_cast<int32_t>(lane * 8 / element));
    lift.emit3(ASSAY_UOP_lane_merge, 8, place, lift.zeroing ? Reg{ASSAY_REG_ZERO} : a[lane],
               b[lane], chosen);
    lift.release_temporaries(mark);
  }
  to.finish();
  return true;
}

bool lift_comparisons(Lift &lift) {
  auto predicate = [&] { return static_cast<unsigned>(lift.constant(3)); };
  switch (lift.decoded.mnemonic) {
#define SIZE(letter, bytes)                                                                        \
  case ZYDIS_MNEMONIC_VPCMP##letter: return compare(lift, bytes, true, predicate());               \
  case ZYDIS_MNEMONIC_VPCMPU##letter: return compare(lift, bytes, false, predicate());             \
  case ZYDIS_MNEMONIC_VPCMPEQ##letter: return compare(lift, bytes, true, 0);                       \
  case ZYDIS_MNEMONIC_VPCMPGT##letter: return compare(lift, bytes, true, 6);                       \
  case ZYDIS_MNEMONIC_VPTESTM##letter: return test_vectors(lift, bytes, false);                    \
  case ZYDIS_MNEMONIC_VPTESTNM##letter: return test_vectors(lift, bytes, true);                    \
  case ZYDIS_MNEMONIC_VPMOVM2##letter: return from_mask(lift, bytes);                              \
  case ZYDIS_MNEMONIC_VPBLENDM##letter: return blend(lift, bytes);                                 \
  case ZYDIS_MNEMONIC_VPMOV##letter##2M: {                                                         \
    LanesRead from(lift, 1);                                                                       \
    return into_mask(lift, lane_count(lift.operand(1)), bytes,                                     \
                     [&](unsigned lane) { return from[lane]; });                                   \
  }                                                                                                \
  case ZYDIS_MNEMONIC_KMOV##letter: return move(lift, bytes);                                      \
  case ZYDIS_MNEMONIC_KORTEST##letter: return test(lift, bytes, true);                             \
  case ZYDIS_MNEMONIC_KTEST##letter: return test(lift, bytes, false);                              \
  case ZYDIS_MNEMONIC_KNOT##letter:                                                                \
    lift.emit(ASSAY_UOP_not, bytes, register_of(lift.operand(0).reg.value),                        \
              value(register_of(lift.operand(1).reg.value)));                                      \
    return true;
    SIZE(B, 1)
    SIZE(W, 2)
    SIZE(D, 4)
    SIZE(Q, 8)
#undef SIZE
  default: return false;
  }
}

} // namespace

bool lift_masks(Lift &lift) {
  bool has_mask_register = false;
  for (unsigned i = 0; i < lift.operand_count; i++)
    has_mask_register |= lift.is_register(i) &&
                         ZydisRegisterGetClass(lift.operand(i).reg.value) == ZYDIS_REGCLASS_MASK;
  if (!has_mask_register && lift.decoded.encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX)
    return false;
  if (auto op = logic_op(lift.decoded.mnemonic))
    return combine(lift, *op);
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_KUNPCKBW: return unpack(lift, 1);
  case ZYDIS_MNEMONIC_KUNPCKWD: return unpack(lift, 2);
  case ZYDIS_MNEMONIC_KUNPCKDQ: return unpack(lift, 4);
  case ZYDIS_MNEMONIC_VCMPPS: return compare_floats(lift, 4);
  case ZYDIS_MNEMONIC_VCMPPD: return compare_floats(lift, 8);
  case ZYDIS_MNEMONIC_VBLENDMPS: return blend(lift, 4);
  case ZYDIS_MNEMONIC_VBLENDMPD: return blend(lift, 8);
  default: return lift_comparisons(lift);
  }
}

} // namespace binary
