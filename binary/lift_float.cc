// Floating point in vectors: packed, and scalar in the lowest element.
//
// A scalar operation of 4 bytes is computed on a whole lane, whose upper half is then put back.

#include "binary/lift_lanes.h"

#include <optional>

namespace binary {
namespace {

struct FloatOp {
  assay_uop_code op;
  unsigned element;
  bool scalar;
};

std::optional<FloatOp> arithmetic(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
#define FORMS(name, op)                                                                            \
  case ZYDIS_MNEMONIC_##name##PS:                                                                  \
  case ZYDIS_MNEMONIC_V##name##PS: return FloatOp{ASSAY_UOP_##op, 4, false};                       \
  case ZYDIS_MNEMONIC_##name##PD:                                                                  \
  case ZYDIS_MNEMONIC_V##name##PD: return FloatOp{ASSAY_UOP_##op, 8, false};                       \
  case ZYDIS_MNEMONIC_##name##SS:                                                                  \
  case ZYDIS_MNEMONIC_V##name##SS: return FloatOp{ASSAY_UOP_##op, 4, true};                        \
  case ZYDIS_MNEMONIC_##name##SD:                                                                  \
  case ZYDIS_MNEMONIC_V##name##SD: return FloatOp{ASSAY_UOP_##op, 8, true};
    FORMS(ADD, float_add)
    FORMS(SUB, float_sub)
    FORMS(MUL, float_mul)
    FORMS(DIV, float_div)
    FORMS(MIN, float_min)
    FORMS(MAX, float_max)
    FORMS(SQRT, float_root)
#undef FORMS
  default: return std::nullopt;
  }
}

// A fused multiply-add: sign of the product, sign of the sum, which operands are multiplied.
struct FusedOp {
  unsigned element;
  bool scalar, negate_product, negate_sum;
  unsigned order; // 132, 213, 231
};

std::optional<FusedOp> fused(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
#define ORDER(name, number, negate_product, negate_sum)                                            \
  case ZYDIS_MNEMONIC_##name##number##PS:                                                          \
    return FusedOp{4, false, negate_product, negate_sum, number};                                  \
  case ZYDIS_MNEMONIC_##name##number##PD:                                                          \
    return FusedOp{8, false, negate_product, negate_sum, number};                                  \
  case ZYDIS_MNEMONIC_##name##number##SS:                                                          \
    return FusedOp{4, true, negate_product, negate_sum, number};                                   \
  case ZYDIS_MNEMONIC_##name##number##SD:                                                          \
    return FusedOp{8, true, negate_product, negate_sum, number};
#define FORMS(name, negate_product, negate_sum)                                                    \
  ORDER(name, 132, negate_product, negate_sum)                                                     \
  ORDER(name, 213, negate_product, negate_sum)                                                     \
  ORDER(name, 231, negate_product, negate_sum)
    FORMS(VFMADD, false, false)
    FORMS(VFMSUB, false, true)
    FORMS(VFNMADD, true, false)
    FORMS(VFNMSUB, true, true)
#undef FORMS
#undef ORDER
  default: return std::nullopt;
  }
}

// Puts the lowest element of `result` over lane 0 of `rest`; the second lane is that of `rest`.
void put_scalar(Lift &lift, LanesWritten &to, unsigned element, Reg result, const LanesRead &rest) {
  Reg low = result;
  if (element == 4)
    low = lift.make(ASSAY_UOP_put32, 8, value(rest[0]), value(result));
  Reg base = register_of(lift.operand(0).reg.value);
  if (rest[1] != base + 1)
    lift.emit(ASSAY_UOP_copy, 8, static_cast<Reg>(base + 1), value(rest[1]));
  if (base != low)
    lift.emit(ASSAY_UOP_copy, 8, base, value(low));
  to.finish(2);
}

// Rounding that the instruction itself names: MXCSR says so meanwhile.
class Rounding {
public:
  explicit Rounding(Lift &lift) : lift_(lift) {
    if (lift.decoded.avx.rounding.mode == ZYDIS_ROUNDING_MODE_INVALID)
      return;
    before_ = lift.make(ASSAY_UOP_copy, 8, value(ASSAY_REG_MXCSR));
    auto mode = static_cast<int64_t>(lift.decoded.avx.rounding.mode - ZYDIS_ROUNDING_MODE_RN);
    lift.emit(ASSAY_UOP_and, 8, ASSAY_REG_MXCSR, value(before_), Operand::of(0x9fff));
    lift.emit(ASSAY_UOP_or, 8, ASSAY_REG_MXCSR, value(ASSAY_REG_MXCSR), Operand::of(mode << 13));
  }
  ~Rounding() {
    if (before_)
      lift_.emit(ASSAY_UOP_copy, 8, ASSAY_REG_MXCSR, value(before_));
  }

private:
  Lift &lift_;
  Reg before_ = 0;
};

bool compute(Lift &lift, FloatOp op) {
  bool is_root = op.op == ASSAY_UOP_float_root;
  if (op.scalar && lift.mask)
    return false;
  Rounding rounding(lift);
  if (!op.scalar && is_root) {
    LanesRead from(lift, 1);
    return lane_by_lane(lift, op.element, [&](Reg place, unsigned lane) {
      lift.emit(op.op, op.element, place, value(from[lane]));
    });
  }
  unsigned first = first_source(lift, 2);
  LanesRead a(lift, first);
  LanesRead b(lift, first + 1, op.scalar ? op.element : lift.bytes(first + 1));
  if (!op.scalar)
    return lane_by_lane(lift, op.element, [&](Reg place, unsigned lane) {
      lift.emit(op.op, op.element, place, value(a[lane]), value(b[lane]));
    });
  LanesWritten to(lift, op.element);
  Reg result = is_root ? lift.make(op.op, op.element, value(b[0]))
                       : lift.make(op.op, op.element, value(a[0]), value(b[0]));
  put_scalar(lift, to, op.element, result, a);
  return true;
}

bool compute_fused(Lift &lift, FusedOp op) {
  if (op.scalar && lift.mask)
    return false;
  Rounding rounding(lift);
  LanesRead one(lift, 0), two(lift, 1);
  LanesRead three(lift, 2, op.scalar ? op.element : lift.bytes(2));
  auto make = [&](Reg place, unsigned lane) {
    Reg a = op.order == 231 ? two[lane] : op.order == 213 ? two[lane] : one[lane];
    Reg b = op.order == 213 ? one[lane] : three[lane];
    Reg c = op.order == 231 ? one[lane] : op.order == 213 ? three[lane] : two[lane];
    a = op.negate_product ? lift.make(ASSAY_UOP_float_negate, op.element, value(a)) : a;
    c = op.negate_sum ? lift.make(ASSAY_UOP_float_negate, op.element, value(c)) : c;
    lift.emit3(ASSAY_UOP_float_fma, op.element, place, a, b, c);
  };
  if (!op.scalar)
    return lane_by_lane(lift, op.element, make);
  LanesWritten to(lift, op.element);
  Reg result = lift.temporary();
  make(result, 0);
  put_scalar(lift, to, op.element, result, one);
  return true;
}

bool compare(Lift &lift, unsigned element, bool scalar) {
  if (lift.mask || ZydisRegisterGetClass(lift.operand(0).reg.value) == ZYDIS_REGCLASS_MASK)
    return false; // masks
  unsigned first = lift.operand_count == 4 ? 1 : 0;
  bool is_legacy = lift.decoded.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
  auto predicate = static_cast<int32_t>(lift.constant(first + 2) & (is_legacy ? 7 : 0x1f));
  LanesRead a(lift, first);
  LanesRead b(lift, first + 1, scalar ? element : lift.bytes(first + 1));
  auto make = [&](Reg place, unsigned lane) {
    lift.emit3(ASSAY_UOP_float_compare, element, place, a[lane], b[lane], ASSAY_REG_ZERO,
               predicate);
  };
  if (!scalar)
    return lane_by_lane(lift, element, make);
  LanesWritten to(lift, element);
  Reg result = lift.temporary();
  make(result, 0);
  put_scalar(lift, to, element, result, a);
  return true;
}

bool compare_to_flags(Lift &lift, unsigned element) {
  LanesRead a(lift, 0), b(lift, 1, element);
  lift.emit(ASSAY_UOP_float_flags, element, ASSAY_REG_FLAGS, value(a[0]), value(b[0]));
  return true;
}

bool round(Lift &lift, unsigned element, bool scalar) {
  unsigned source = scalar ? first_source(lift, 3) + 1 : 1;
  unsigned last = lift.operand_count - 1;
  auto order = lift.constant(last);
  if (lift.mask || order & 0xf0) // vrndscale to fractions
    return false;
  auto mode = static_cast<int32_t>(order & 4 ? 4 : order & 3);
  LanesRead from(lift, source, scalar ? element : lift.bytes(source));
  auto make = [&](Reg place, unsigned lane) {
    lift.emit3(ASSAY_UOP_float_round, element, place, from[lane], ASSAY_REG_ZERO, ASSAY_REG_ZERO,
               mode);
  };
  if (!scalar)
    return lane_by_lane(lift, element, make);
  LanesRead rest(lift, lift.operand_count == 4 ? 1 : 0);
  LanesWritten to(lift, element);
  Reg result = lift.temporary();
  make(result, 0);
  put_scalar(lift, to, element, result, rest);
  return true;
}

// cvtsi2sd, vcvtusi2ss …
bool from_integer(Lift &lift, unsigned element, bool is_unsigned) {
  Rounding rounding(lift);
  unsigned last = lift.operand_count - 1;
  Reg integer =
      lift.is_memory(last) ? lift.read_register(last) : register_of(lift.operand(last).reg.value);
  LanesRead rest(lift, lift.operand_count == 3 ? 1 : 0);
  LanesWritten to(lift, element);
  Reg result =
      lift.make3(is_unsigned ? ASSAY_UOP_float_from_unsigned : ASSAY_UOP_float_from_int, element,
                 integer, ASSAY_REG_ZERO, ASSAY_REG_ZERO, static_cast<int32_t>(lift.bytes(last)));
  put_scalar(lift, to, element, result, rest);
  return true;
}

bool to_integer(Lift &lift, unsigned element, bool cut) {
  Rounding rounding(lift);
  LanesRead from(lift, 1, element);
  lift.emit3(cut ? ASSAY_UOP_float_to_int_cut : ASSAY_UOP_float_to_int, lift.bytes(0),
             register_of(lift.operand(0).reg.value), from[0], ASSAY_REG_ZERO, ASSAY_REG_ZERO,
             static_cast<int32_t>(element));
  return true;
}

// cvtss2sd, cvtsd2ss
bool between(Lift &lift, assay_uop_code op, unsigned from_bytes, unsigned to_bytes) {
  if (lift.mask)
    return false;
  Rounding rounding(lift);
  unsigned last = lift.operand_count - 1;
  LanesRead from(lift, last, from_bytes), rest(lift, lift.operand_count == 3 ? 1 : 0);
  LanesWritten to(lift, to_bytes);
  Reg result = lift.make(op, to_bytes, value(from[0]));
  put_scalar(lift, to, to_bytes, result, rest);
  return true;
}

// Elements of 4 bytes become elements of 8: cvtdq2pd, cvtps2pd.
template <class Make> bool widen(Lift &lift, Make make) {
  unsigned lanes = lane_count(lift.operand(0)), size = 4 * lanes;
  LanesRead from(lift, 1, size);
  LanesWritten to(lift, 8);
  Reg results[kMaxLanes];
  for (unsigned lane = 0; lane < lanes; lane++) {
    Reg element = lift.make3(ASSAY_UOP_lane_get, 4, from[lane / 2], ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                             static_cast<int32_t>(lane & 1));
    results[lane] = make(element);
  }
  to.put_all({results, lanes});
  to.finish();
  return true;
}

// Elements of 8 bytes become elements of 4 in the lower half: cvtpd2dq, cvtpd2ps.
template <class Make> bool narrow(Lift &lift, Make make) {
  if (lift.mask)
    return false;
  Rounding rounding(lift);
  // A broadcast element stands for as many as the vector has.
  unsigned length = lift.decoded.avx.vector_length / 64u;
  unsigned lanes = length ? length : lane_count(lift.operand(1));
  LanesRead from(lift, 1);
  LanesWritten to(lift, 4);
  Reg results[kMaxLanes] = {};
  for (unsigned lane = 0; lane < lanes; lane++) {
    Reg element = make(from[lane]);
    if (lane & 1)
      lift.emit3(ASSAY_UOP_lane_put, 4, results[lane / 2], results[lane / 2], element,
                 ASSAY_REG_ZERO, 1);
    else
      results[lane / 2] = lift.make(ASSAY_UOP_copy, 4, value(element));
  }
  unsigned written = lanes / 2 ? lanes / 2 : 1;
  to.put_all({results, written});
  if (written < 2) { // the upper half of xmm becomes 0 in any form
    Reg base = register_of(lift.operand(0).reg.value);
    lift.emit(ASSAY_UOP_copy, 8, static_cast<Reg>(base + 1), Operand::of(0));
    written = 2;
  }
  to.finish(written);
  return true;
}

// Each element of 4 bytes by itself: cvtdq2ps, cvttps2dq.
bool convert_words(Lift &lift, assay_uop_code op) {
  Rounding rounding(lift);
  LanesRead from(lift, 1);
  return lane_by_lane(lift, 4, [&](Reg place, unsigned lane) {
    Reg low = lift.make3(op, 4, from[lane], ASSAY_REG_ZERO, ASSAY_REG_ZERO, 4);
    Reg high = lift.make(ASSAY_UOP_shr, 8, value(from[lane]), Operand::of(32));
    lift.emit3(op, 4, high, high, ASSAY_REG_ZERO, ASSAY_REG_ZERO, 4);
    lift.emit3(ASSAY_UOP_lane_put, 4, place, low, high, ASSAY_REG_ZERO, 1);
  });
}

// Elements of 8 bytes, each by itself: vcvtqq2pd, vcvttpd2qq.
bool convert_lanes(Lift &lift, assay_uop_code op) {
  Rounding rounding(lift);
  LanesRead from(lift, 1);
  return lane_by_lane(lift, 8, [&](Reg place, unsigned lane) {
    lift.emit3(op, 8, place, from[lane], ASSAY_REG_ZERO, ASSAY_REG_ZERO, 8);
  });
}

// addsubpd, vfmaddsub132pd: `even` and `odd` make(op) elements with even and odd numbers.
template <class Make>
void alternate(Lift &lift, unsigned element, Reg place, unsigned lane, Make make) {
  if (element == 8) {
    make(place, lane & 1);
    return;
  }
  Reg even = lift.temporary(), odd = lift.temporary();
  make(even, false);
  make(odd, true);
  Reg high = lift.in_register(Operand::of(static_cast<int64_t>(0xffffffff00000000)));
  lift.emit3(ASSAY_UOP_lane_merge, 8, place, even, odd, high);
}

bool add_and_subtract(Lift &lift, unsigned element) {
  unsigned first = first_source(lift, 2);
  LanesRead a(lift, first), b(lift, first + 1);
  return lane_by_lane(lift, element, [&](Reg place, unsigned lane) {
    alternate(lift, element, place, lane, [&](Reg to, bool is_odd) {
      lift.emit(is_odd ? ASSAY_UOP_float_add : ASSAY_UOP_float_sub, element, to, value(a[lane]),
                value(b[lane]));
    });
  });
}

// vfmaddsub: even elements subtract; vfmsubadd: odd ones.
bool fuse_alternately(Lift &lift, unsigned element, unsigned order, bool odd_subtracts) {
  Rounding rounding(lift);
  LanesRead one(lift, 0), two(lift, 1), three(lift, 2);
  return lane_by_lane(lift, element, [&](Reg place, unsigned lane) {
    Reg a = order == 132 ? one[lane] : two[lane];
    Reg b = order == 213 ? one[lane] : three[lane];
    Reg c = order == 231 ? one[lane] : order == 213 ? three[lane] : two[lane];
    Reg negated = lift.make(ASSAY_UOP_float_negate, element, value(c));
    alternate(lift, element, place, lane, [&](Reg to, bool is_odd) {
      lift.emit3(ASSAY_UOP_float_fma, element, to, a, b, is_odd == odd_subtracts ? negated : c);
    });
  });
}

bool lift_alternating(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_ADDSUBPS:
  case ZYDIS_MNEMONIC_VADDSUBPS: return add_and_subtract(lift, 4);
  case ZYDIS_MNEMONIC_ADDSUBPD:
  case ZYDIS_MNEMONIC_VADDSUBPD: return add_and_subtract(lift, 8);
#define ORDER(number)                                                                              \
  case ZYDIS_MNEMONIC_VFMADDSUB##number##PS: return fuse_alternately(lift, 4, number, false);      \
  case ZYDIS_MNEMONIC_VFMADDSUB##number##PD: return fuse_alternately(lift, 8, number, false);      \
  case ZYDIS_MNEMONIC_VFMSUBADD##number##PS: return fuse_alternately(lift, 4, number, true);       \
  case ZYDIS_MNEMONIC_VFMSUBADD##number##PD: return fuse_alternately(lift, 8, number, true);
    ORDER(132)
    ORDER(213)
    ORDER(231)
#undef ORDER
  case ZYDIS_MNEMONIC_LDMXCSR:
  case ZYDIS_MNEMONIC_VLDMXCSR: {
    Reg word = lift.read_register(0);
    lift.emit(ASSAY_UOP_and, 8, ASSAY_REG_MXCSR, value(word), Operand::of(ASSAY_MXCSR_CONTROL));
    return true;
  }
  default: return false;
  }
}

bool lift_conversions(Lift &lift) {
  auto to_int = [&](assay_uop_code op) {
    return [&lift, op](Reg element) {
      return lift.make3(op, 4, element, ASSAY_REG_ZERO, ASSAY_REG_ZERO, 8);
    };
  };
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_CVTSI2SD:
  case ZYDIS_MNEMONIC_VCVTSI2SD: return from_integer(lift, 8, false);
  case ZYDIS_MNEMONIC_CVTSI2SS:
  case ZYDIS_MNEMONIC_VCVTSI2SS: return from_integer(lift, 4, false);
  case ZYDIS_MNEMONIC_VCVTUSI2SD: return from_integer(lift, 8, true);
  case ZYDIS_MNEMONIC_VCVTUSI2SS: return from_integer(lift, 4, true);
  case ZYDIS_MNEMONIC_CVTTSD2SI:
  case ZYDIS_MNEMONIC_VCVTTSD2SI: return to_integer(lift, 8, true);
  case ZYDIS_MNEMONIC_CVTTSS2SI:
  case ZYDIS_MNEMONIC_VCVTTSS2SI: return to_integer(lift, 4, true);
  case ZYDIS_MNEMONIC_CVTSD2SI:
  case ZYDIS_MNEMONIC_VCVTSD2SI: return to_integer(lift, 8, false);
  case ZYDIS_MNEMONIC_CVTSS2SI:
  case ZYDIS_MNEMONIC_VCVTSS2SI: return to_integer(lift, 4, false);
  case ZYDIS_MNEMONIC_CVTSS2SD:
  case ZYDIS_MNEMONIC_VCVTSS2SD: return between(lift, ASSAY_UOP_float_widen, 4, 8);
  case ZYDIS_MNEMONIC_CVTSD2SS:
  case ZYDIS_MNEMONIC_VCVTSD2SS: return between(lift, ASSAY_UOP_float_narrow, 8, 4);
  case ZYDIS_MNEMONIC_CVTDQ2PS:
  case ZYDIS_MNEMONIC_VCVTDQ2PS: return convert_words(lift, ASSAY_UOP_float_from_int);
  case ZYDIS_MNEMONIC_CVTTPS2DQ:
  case ZYDIS_MNEMONIC_VCVTTPS2DQ: return convert_words(lift, ASSAY_UOP_float_to_int_cut);
  case ZYDIS_MNEMONIC_CVTPS2DQ:
  case ZYDIS_MNEMONIC_VCVTPS2DQ: return convert_words(lift, ASSAY_UOP_float_to_int);
  case ZYDIS_MNEMONIC_CVTDQ2PD:
  case ZYDIS_MNEMONIC_VCVTDQ2PD:
    return widen(lift, [&](Reg element) {
      return lift.make3(ASSAY_UOP_float_from_int, 8, element, ASSAY_REG_ZERO, ASSAY_REG_ZERO, 4);
    });
  case ZYDIS_MNEMONIC_CVTPS2PD:
  case ZYDIS_MNEMONIC_VCVTPS2PD:
    return widen(lift,
                 [&](Reg element) { return lift.make(ASSAY_UOP_float_widen, 8, value(element)); });
  case ZYDIS_MNEMONIC_VCVTUDQ2PS: return convert_words(lift, ASSAY_UOP_float_from_unsigned);
  case ZYDIS_MNEMONIC_VCVTUDQ2PD:
    return widen(lift, [&](Reg element) {
      return lift.make3(ASSAY_UOP_float_from_unsigned, 8, element, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                        4);
    });
  case ZYDIS_MNEMONIC_VCVTQQ2PD: return convert_lanes(lift, ASSAY_UOP_float_from_int);
  case ZYDIS_MNEMONIC_VCVTUQQ2PD: return convert_lanes(lift, ASSAY_UOP_float_from_unsigned);
  case ZYDIS_MNEMONIC_VCVTPD2QQ: return convert_lanes(lift, ASSAY_UOP_float_to_int);
  case ZYDIS_MNEMONIC_VCVTTPD2QQ: return convert_lanes(lift, ASSAY_UOP_float_to_int_cut);
  case ZYDIS_MNEMONIC_CVTTPD2DQ:
  case ZYDIS_MNEMONIC_VCVTTPD2DQ: return narrow(lift, to_int(ASSAY_UOP_float_to_int_cut));
  case ZYDIS_MNEMONIC_CVTPD2DQ:
  case ZYDIS_MNEMONIC_VCVTPD2DQ: return narrow(lift, to_int(ASSAY_UOP_float_to_int));
  case ZYDIS_MNEMONIC_CVTPD2PS:
  case ZYDIS_MNEMONIC_VCVTPD2PS:
    return narrow(
        lift, [&](Reg element) { return lift.make(ASSAY_UOP_float_narrow, 4, value(element)); });
  default: return false;
  }
}

} // namespace

bool lift_float(Lift &lift) {
  if (auto op = arithmetic(lift.decoded.mnemonic))
    return compute(lift, *op);
  if (auto op = fused(lift.decoded.mnemonic))
    return compute_fused(lift, *op);
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_CMPPS:
  case ZYDIS_MNEMONIC_VCMPPS: return compare(lift, 4, false);
  case ZYDIS_MNEMONIC_CMPPD:
  case ZYDIS_MNEMONIC_VCMPPD: return compare(lift, 8, false);
  case ZYDIS_MNEMONIC_CMPSS:
  case ZYDIS_MNEMONIC_VCMPSS: return compare(lift, 4, true);
  case ZYDIS_MNEMONIC_CMPSD:
  case ZYDIS_MNEMONIC_VCMPSD:
    return lift.decoded.meta.category != ZYDIS_CATEGORY_STRINGOP && compare(lift, 8, true);
  case ZYDIS_MNEMONIC_UCOMISS:
  case ZYDIS_MNEMONIC_VUCOMISS:
  case ZYDIS_MNEMONIC_COMISS:
  case ZYDIS_MNEMONIC_VCOMISS: return compare_to_flags(lift, 4);
  case ZYDIS_MNEMONIC_UCOMISD:
  case ZYDIS_MNEMONIC_VUCOMISD:
  case ZYDIS_MNEMONIC_COMISD:
  case ZYDIS_MNEMONIC_VCOMISD: return compare_to_flags(lift, 8);
  case ZYDIS_MNEMONIC_ROUNDPS:
  case ZYDIS_MNEMONIC_VROUNDPS:
  case ZYDIS_MNEMONIC_VRNDSCALEPS: return round(lift, 4, false);
  case ZYDIS_MNEMONIC_ROUNDPD:
  case ZYDIS_MNEMONIC_VROUNDPD:
  case ZYDIS_MNEMONIC_VRNDSCALEPD: return round(lift, 8, false);
  case ZYDIS_MNEMONIC_ROUNDSS:
  case ZYDIS_MNEMONIC_VROUNDSS:
  case ZYDIS_MNEMONIC_VRNDSCALESS: return round(lift, 4, true);
  case ZYDIS_MNEMONIC_ROUNDSD:
  case ZYDIS_MNEMONIC_VROUNDSD:
  case ZYDIS_MNEMONIC_VRNDSCALESD: return round(lift, 8, true);
  case ZYDIS_MNEMONIC_HADDPS:
  case ZYDIS_MNEMONIC_VHADDPS: return add_neighbours(lift, ASSAY_UOP_float_add, 4);
  case ZYDIS_MNEMONIC_HADDPD:
  case ZYDIS_MNEMONIC_VHADDPD: return add_neighbours(lift, ASSAY_UOP_float_add, 8);
  default: return lift_alternating(lift) || lift_conversions(lift);
  }
}

} // namespace binary
