// x87: the stack of eight registers with values of 80 bits.
//
// A value is two words, its significand and its sign with the exponent; arithmetic is one micro-op on a pair of
// them, loads and stores convert. st(i) is always the same register of micro-ops, and what pushes or
// pops turns the whole stack by one micro-op, x87_turn: registers chosen by a number that is known only
// when the program runs would be arrays to everyone who reads micro-ops. How far it was turned is
// kept (x87_top), because MMX names the same registers by their own numbers.
//
// The status word is not kept, so what reads it is opaque, and what only writes it does nothing. Which
// registers are empty is not kept either: programs do not overflow the stack. Constants that depend on
// how the processor rounds (fldpi), remainders and transcendental functions are opaque.

#include "binary/lift.h"

#include <array>
#include <optional>

namespace binary {
namespace {

constexpr Reg kTop = ASSAY_REG_X87;

// The two words of a value.
struct Pair {
  Reg low = 0, high = 0;
};

Pair stack(unsigned index) {
  Reg low = static_cast<Reg>(ASSAY_REG_X87 + 2 * index);
  return {low, static_cast<Reg>(low + 1)};
}

bool is_stack_register(const ZydisDecodedOperand &operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
         ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_X87;
}

Pair pair_of(const ZydisDecodedOperand &operand) {
  return stack(static_cast<unsigned>(ZydisRegisterGetId(operand.reg.value)));
}

void turn(Lift &lift, int32_t by) {
  lift.emit3(ASSAY_UOP_x87_turn, 8, kTop, ASSAY_REG_ZERO, ASSAY_REG_ZERO, ASSAY_REG_ZERO, by);
}

void pop(Lift &lift, unsigned times) {
  for (unsigned i = 0; i < times; i++)
    turn(lift, 1);
}

void put(Lift &lift, Pair to, Pair from) {
  lift.emit(ASSAY_UOP_copy, 8, to.low, value(from.low));
  lift.emit(ASSAY_UOP_copy, 8, to.high, value(from.high));
}

void push(Lift &lift, Pair from) {
  turn(lift, 7);
  put(lift, stack(0), from);
}

Pair copied(Lift &lift, Pair from) {
  Pair to{lift.temporary(), lift.temporary()};
  put(lift, to, from);
  return to;
}

// The operand in memory as a value of x87.
Pair loaded(Lift &lift, const ZydisDecodedOperand &memory, bool is_integer) {
  unsigned size = memory.size / 8;
  Address address = lift.address_of(memory);
  lift.access(size, false);
  Reg from = lift.temporary();
  Pair made{lift.temporary(), lift.temporary()};
  if (size == 10) {
    lift.load(made.low, 8, address);
    address.offset += 8;
    lift.load(made.high, 2, address);
    return made;
  }
  lift.load(from, size, address);
  lift.emit(is_integer ? ASSAY_UOP_x87_low_of_int : ASSAY_UOP_x87_low, size, made.low, value(from));
  lift.emit(is_integer ? ASSAY_UOP_x87_high_of_int : ASSAY_UOP_x87_high, size, made.high,
            value(from));
  return made;
}

// A micro-op on whole values. The second word of an operand that is a temporary is operand `c`, so that
// what reads micro-ops sees where it comes from.
void compute(Lift &lift, assay_uop_code op, Reg to, Pair a, Pair b) {
  bool temporary_a = a.low < ASSAY_REG_LANES, temporary_b = b.low < ASSAY_REG_LANES;
  Reg other = temporary_a ? a.high : temporary_b && b.low ? b.high : Reg{ASSAY_REG_ZERO};
  lift.emit3(op, 8, to, a.low, b.low ? b.low : Reg{ASSAY_REG_ZERO}, other);
}

struct Arithmetic {
  assay_uop_code op;
  bool reversed = false, pops = false, is_integer = false;
};

std::optional<Arithmetic> arithmetic(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
  case ZYDIS_MNEMONIC_FADD: return Arithmetic{ASSAY_UOP_x87_add};
  case ZYDIS_MNEMONIC_FADDP: return Arithmetic{ASSAY_UOP_x87_add, false, true};
  case ZYDIS_MNEMONIC_FIADD: return Arithmetic{ASSAY_UOP_x87_add, false, false, true};
  case ZYDIS_MNEMONIC_FMUL: return Arithmetic{ASSAY_UOP_x87_mul};
  case ZYDIS_MNEMONIC_FMULP: return Arithmetic{ASSAY_UOP_x87_mul, false, true};
  case ZYDIS_MNEMONIC_FIMUL: return Arithmetic{ASSAY_UOP_x87_mul, false, false, true};
#define BOTH_WAYS(name, op)                                                                        \
  case ZYDIS_MNEMONIC_F##name: return Arithmetic{ASSAY_UOP_##op};                                  \
  case ZYDIS_MNEMONIC_F##name##P: return Arithmetic{ASSAY_UOP_##op, false, true};                  \
  case ZYDIS_MNEMONIC_FI##name: return Arithmetic{ASSAY_UOP_##op, false, false, true};             \
  case ZYDIS_MNEMONIC_F##name##R: return Arithmetic{ASSAY_UOP_##op, true};                         \
  case ZYDIS_MNEMONIC_F##name##RP: return Arithmetic{ASSAY_UOP_##op, true, true};                  \
  case ZYDIS_MNEMONIC_FI##name##R: return Arithmetic{ASSAY_UOP_##op, true, false, true};
    BOTH_WAYS(SUB, x87_sub)
    BOTH_WAYS(DIV, x87_div)
#undef BOTH_WAYS
  default: return std::nullopt;
  }
}

bool combine(Lift &lift, Arithmetic op) {
  Pair to = stack(0), from;
  if (lift.is_memory(0)) {
    from = loaded(lift, lift.operand(0), op.is_integer);
  } else {
    to = pair_of(lift.operand(0));
    from = pair_of(lift.operand(1));
  }
  compute(lift, op.op, to.low, op.reversed ? from : to, op.reversed ? to : from);
  pop(lift, op.pops);
  return true;
}

bool store(Lift &lift, bool pops) { // fst, fstp
  if (is_stack_register(lift.operand(0))) {
    put(lift, pair_of(lift.operand(0)), stack(0));
  } else {
    unsigned size = lift.bytes(0);
    Address address = lift.address_of(lift.operand(0));
    Reg made = kTop;
    if (size < 10)
      made = lift.make(ASSAY_UOP_x87_to_float, size, value(kTop), value(stack(0).high));
    lift.access(size, true);
    lift.store(made, size < 10 ? size : 8, address);
    if (size == 10) {
      address.offset += 8;
      lift.store(stack(0).high, 2, address);
    }
  }
  pop(lift, pops);
  return true;
}

bool store_integer(Lift &lift, bool cut, bool pops) {
  unsigned size = lift.bytes(0);
  Address address = lift.address_of(lift.operand(0));
  Reg made = lift.make3(ASSAY_UOP_x87_to_int, size, kTop, stack(0).high, ASSAY_REG_ZERO, cut);
  lift.access(size, true);
  lift.store(made, size, address);
  pop(lift, pops);
  return true;
}

bool compare(Lift &lift, bool pops) { // into the flags
  compute(lift, ASSAY_UOP_x87_flags, ASSAY_REG_FLAGS, pair_of(lift.operand(0)),
          pair_of(lift.operand(1)));
  pop(lift, pops);
  return true;
}

bool compare_to_status(Lift &lift, unsigned pops) { // which is not kept
  if (lift.operand_count && lift.is_memory(0))
    lift.read(0);
  pop(lift, pops);
  return true;
}

bool exchange(Lift &lift) {
  Pair other = pair_of(lift.operand(0)), kept = copied(lift, stack(0));
  put(lift, stack(0), other);
  put(lift, other, kept);
  return true;
}

bool move_if(Lift &lift, assay_uop_code test) {
  Reg holds = lift.make(test, 8, value(ASSAY_REG_FLAGS));
  Pair to = stack(0), from = pair_of(lift.operand(1));
  lift.emit3(ASSAY_UOP_select, 8, to.low, from.low, to.low, holds);
  lift.emit3(ASSAY_UOP_select, 8, to.high, from.high, to.high, holds);
  return true;
}

bool push_constant(Lift &lift, uint64_t low, uint64_t high) {
  turn(lift, 7);
  lift.emit(ASSAY_UOP_copy, 8, stack(0).low, Operand::of(low));
  lift.emit(ASSAY_UOP_copy, 8, stack(0).high, Operand::of(high));
  return true;
}

bool change_sign(Lift &lift, assay_uop_code op, int64_t bits) {
  lift.emit(op, 8, stack(0).high, value(stack(0).high), Operand::of(bits));
  return true;
}

bool load_control(Lift &lift) {
  Reg word = lift.read_register(0);
  // Bit 6 is 1, and the others that have no meaning are 0.
  lift.emit(ASSAY_UOP_and, 8, ASSAY_REG_X87_CONTROL, value(word), Operand::of(0x1f3f));
  lift.emit(ASSAY_UOP_or, 8, ASSAY_REG_X87_CONTROL, value(ASSAY_REG_X87_CONTROL),
            Operand::of(0x40));
  return true;
}

bool lift_stack(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_FLD:
    push(lift, lift.is_memory(0) ? loaded(lift, lift.operand(0), false)
                                 : copied(lift, pair_of(lift.operand(0))));
    return true;
  case ZYDIS_MNEMONIC_FILD: push(lift, loaded(lift, lift.operand(0), true)); return true;
  case ZYDIS_MNEMONIC_FLD1: return push_constant(lift, 1ULL << 63, 0x3fff);
  case ZYDIS_MNEMONIC_FLDZ: return push_constant(lift, 0, 0);
  case ZYDIS_MNEMONIC_FST: return store(lift, false);
  case ZYDIS_MNEMONIC_FSTP: return store(lift, true);
  case ZYDIS_MNEMONIC_FIST: return store_integer(lift, false, false);
  case ZYDIS_MNEMONIC_FISTP: return store_integer(lift, false, true);
  case ZYDIS_MNEMONIC_FISTTP: return store_integer(lift, true, true);
  case ZYDIS_MNEMONIC_FXCH: return exchange(lift);
  case ZYDIS_MNEMONIC_FINCSTP: turn(lift, 1); return true;
  case ZYDIS_MNEMONIC_FDECSTP: turn(lift, 7); return true;
  case ZYDIS_MNEMONIC_FFREE: return true;
  case ZYDIS_MNEMONIC_FFREEP: pop(lift, 1); return true;
  case ZYDIS_MNEMONIC_FLDCW: return load_control(lift);
  case ZYDIS_MNEMONIC_FNSTCW: lift.finish(0, ASSAY_REG_X87_CONTROL); return true;
  case ZYDIS_MNEMONIC_FNINIT:
    turn_to_bottom(lift);
    lift.emit(ASSAY_UOP_copy, 8, ASSAY_REG_X87_CONTROL, Operand::of(ASSAY_X87_CONTROL_AT_START));
    return true;
  case ZYDIS_MNEMONIC_EMMS: turn_to_bottom(lift); return true;
  case ZYDIS_MNEMONIC_FWAIT:
  case ZYDIS_MNEMONIC_FNOP:
  case ZYDIS_MNEMONIC_FNCLEX: return true; // of the status alone
  default: return false;
  }
}

} // namespace

bool is_x87(const ZydisDecodedInstruction &decoded) {
  return decoded.meta.category == ZYDIS_CATEGORY_X87_ALU ||
         decoded.meta.category == ZYDIS_CATEGORY_FCMOV || decoded.mnemonic == ZYDIS_MNEMONIC_EMMS;
}

void turn_to_bottom(Lift &lift) {
  Reg back = lift.make(ASSAY_UOP_neg, 8, value(ASSAY_REG_X87_TOP));
  lift.emit3(ASSAY_UOP_x87_turn, 8, kTop, back, ASSAY_REG_ZERO, ASSAY_REG_ZERO);
}

bool lift_x87(Lift &lift) {
  if (auto op = arithmetic(lift.decoded.mnemonic))
    return combine(lift, *op);
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_FCOMI:
  case ZYDIS_MNEMONIC_FUCOMI: return compare(lift, false);
  case ZYDIS_MNEMONIC_FCOMIP:
  case ZYDIS_MNEMONIC_FUCOMIP: return compare(lift, true);
  case ZYDIS_MNEMONIC_FTST:
  case ZYDIS_MNEMONIC_FXAM:
  case ZYDIS_MNEMONIC_FCOM:
  case ZYDIS_MNEMONIC_FICOM:
  case ZYDIS_MNEMONIC_FUCOM: return compare_to_status(lift, 0);
  case ZYDIS_MNEMONIC_FCOMP:
  case ZYDIS_MNEMONIC_FICOMP:
  case ZYDIS_MNEMONIC_FUCOMP: return compare_to_status(lift, 1);
  case ZYDIS_MNEMONIC_FCOMPP:
  case ZYDIS_MNEMONIC_FUCOMPP: return compare_to_status(lift, 2);
  case ZYDIS_MNEMONIC_FCMOVB: return move_if(lift, ASSAY_UOP_if_b);
  case ZYDIS_MNEMONIC_FCMOVE: return move_if(lift, ASSAY_UOP_if_e);
  case ZYDIS_MNEMONIC_FCMOVBE: return move_if(lift, ASSAY_UOP_if_be);
  case ZYDIS_MNEMONIC_FCMOVU: return move_if(lift, ASSAY_UOP_if_p);
  case ZYDIS_MNEMONIC_FCMOVNB: return move_if(lift, ASSAY_UOP_if_ae);
  case ZYDIS_MNEMONIC_FCMOVNE: return move_if(lift, ASSAY_UOP_if_ne);
  case ZYDIS_MNEMONIC_FCMOVNBE: return move_if(lift, ASSAY_UOP_if_a);
  case ZYDIS_MNEMONIC_FCMOVNU: return move_if(lift, ASSAY_UOP_if_np);
  case ZYDIS_MNEMONIC_FCHS: return change_sign(lift, ASSAY_UOP_xor, 0x8000);
  case ZYDIS_MNEMONIC_FABS: return change_sign(lift, ASSAY_UOP_and, 0x7fff);
  case ZYDIS_MNEMONIC_FSQRT: compute(lift, ASSAY_UOP_x87_root, kTop, stack(0), {}); return true;
  case ZYDIS_MNEMONIC_FRNDINT: compute(lift, ASSAY_UOP_x87_round, kTop, stack(0), {}); return true;
  default: return lift_stack(lift);
  }
}

} // namespace binary
