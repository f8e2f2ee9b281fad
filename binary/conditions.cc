// What a branch asks: the comparison whose flags it reads, as forms of both sides.
//
// A branch reads one bit, which a micro-op makes of flags, which another one makes of two numbers: these are found
// backwards. Where flags are those of a sum or of a result, the result is compared with zero, of which only equality is
// known; what was added may have overflowed.

#include "binary/forms.h"

#include "binary/effects.h"

namespace binary {

// What the micro-op at `place` reads, seen from a node.
ExprId Forms::first_operand(uint32_t node, uint32_t place) {
  return operand(node, ssa_.uops[place].a, uop_making(place).a);
}
ExprId Forms::second_operand(uint32_t node, uint32_t place) {
  const assay_uop &uop = uop_making(place);
  return has_immediate(uop) ? expressions_.constant(static_cast<uint64_t>(uop.imm))
                            : operand(node, ssa_.uops[place].b, uop.b);
}

const assay_uop &Forms::uop_making(uint32_t place) const {
  return graph_.code.uops[ssa_.values[ssa_.uops[place].result.v].uop];
}

// The two numbers that the flags made at `place` compare, where `asked` is asked of them.
std::optional<Forms::Compared> Forms::compared(uint32_t node, uint32_t place,
                                               const assay_uop &asked) {
  const assay_uop &flags = uop_making(place);
  const bool asks_equality = asked.op == ASSAY_UOP_if_e || asked.op == ASSAY_UOP_if_ne;
  const ExprId left = first_operand(node, place);
  switch (flags.op) {
  case ASSAY_UOP_flags_sub: return Compared{left, second_operand(node, place), false};
  case ASSAY_UOP_flags_and:
    if (has_immediate(flags) || ssa_.uops[place].a != ssa_.uops[place].b)
      return std::nullopt;
    return Compared{left, zero_, true};
  case ASSAY_UOP_flags_inc:
  case ASSAY_UOP_flags_dec:
  case ASSAY_UOP_flags_add: {
    if (!asks_equality)
      return std::nullopt;
    const ExprId added = flags.op == ASSAY_UOP_flags_add   ? second_operand(node, place)
                         : flags.op == ASSAY_UOP_flags_inc ? expressions_.constant(1)
                                                           : expressions_.constant(~uint64_t{0});
    return Compared{expressions_.add(left, added), zero_, true};
  }
  case ASSAY_UOP_flags_result:
    if (!asks_equality)
      return std::nullopt;
    return Compared{left, zero_, true};
  default: return std::nullopt;
  }
}

// How a jump asks; of a difference the sign is known only without overflow, that is, from zero.
std::optional<Condition::Op> Forms::relation(unsigned asked, bool of_zero) {
  using Op = Condition::Op;
  switch (asked) {
  case ASSAY_UOP_if_e: return Op::equal;
  case ASSAY_UOP_if_ne: return Op::not_equal;
  case ASSAY_UOP_if_b:
  case ASSAY_UOP_if_l: return Op::less;
  case ASSAY_UOP_if_ae:
  case ASSAY_UOP_if_ge: return Op::greater_equal;
  case ASSAY_UOP_if_be:
  case ASSAY_UOP_if_le: return Op::less_equal;
  case ASSAY_UOP_if_a:
  case ASSAY_UOP_if_g: return Op::greater;
  case ASSAY_UOP_if_s: return of_zero ? std::optional(Op::less) : std::nullopt;
  case ASSAY_UOP_if_ns: return of_zero ? std::optional(Op::greater_equal) : std::nullopt;
  default: return std::nullopt;
  }
}

std::optional<Condition> Forms::condition(uint32_t node, uint32_t at) {
  using Op = Condition::Op;
  auto made_by = [&](ValueId value) {
    return value.known() && ssa_.values[value.v].kind == ValueKind::micro_op
               ? ssa_.place_of(graph_, ssa_.values[value.v])
               : UINT32_MAX;
  };
  const uint32_t test = made_by(ssa_.uops[at].b);
  if (test == UINT32_MAX)
    return std::nullopt;
  const assay_uop &asked = uop_making(test);
  if (asked.op == ASSAY_UOP_is_zero || asked.op == ASSAY_UOP_not_zero) {
    const ExprId tested = expressions_.zero_extend(first_operand(node, test), asked.width);
    const Op op = asked.op == ASSAY_UOP_is_zero ? Op::equal : Op::not_equal;
    return Condition{op, false, asked.width, tested, zero_, tested};
  }
  if (!assay_uop_is_condition(asked.op))
    return std::nullopt;
  const uint32_t made = made_by(ssa_.uops[test].a);
  if (made == UINT32_MAX)
    return std::nullopt;
  const std::optional<Compared> numbers = compared(node, made, asked);
  if (!numbers)
    return std::nullopt;
  const std::optional<Op> op = relation(asked.op, numbers->of_zero);
  if (!op)
    return std::nullopt;
  const auto width = uop_making(made).width;
  const bool is_signed = asked.op == ASSAY_UOP_if_s || asked.op == ASSAY_UOP_if_ns ||
                         assay_uop_is_signed_condition(asked.op);
  auto extended = [&](ExprId form) {
    return is_signed ? expressions_.sign_extend(form, width)
                     : expressions_.zero_extend(form, width);
  };
  Condition result{*op, is_signed, width, extended(numbers->left), extended(numbers->right), {}};
  result.difference =
      *op <= Op::not_equal
          ? expressions_.zero_extend(expressions_.sub(numbers->left, numbers->right), width)
          : expressions_.sub(result.left, result.right);
  return result;
}

} // namespace binary
