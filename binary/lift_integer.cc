// Moves, arithmetic and logic on general registers and memory.
//
// Flags are computed from the operands, before the result may overwrite one of them.

#include "binary/lift.h"

namespace binary {
namespace {

constexpr Reg kFlagsRegister = ASSAY_REG_FLAGS;

// op and its flags of two operands; the result goes to operand 0 unless it is a comparison.
bool arithmetic(Lift &lift, assay_uop_code op, assay_uop_code flags, bool keeps_result = true) {
  unsigned width = lift.bytes(0);
  Reg a = lift.read_register(0);
  Operand b = lift.read(1);
  lift.emit(flags, width, kFlagsRegister, value(a), b);
  if (keeps_result) {
    Reg result = lift.destination(0);
    lift.emit(op, width, result, value(a), b);
    lift.finish(0, result);
  }
  return true;
}

bool logic(Lift &lift, assay_uop_code op) {
  unsigned width = lift.bytes(0);
  Reg a = lift.read_register(0);
  Operand b = lift.read(1);
  Reg result = lift.destination(0);
  lift.emit(op, width, result, value(a), b);
  lift.finish(0, result);
  // Of the result, which has been cut: the destination may hold more than the operand's width.
  lift.emit(ASSAY_UOP_flags_and, width, kFlagsRegister, value(result), value(result));
  return true;
}

bool with_carry(Lift &lift, assay_uop_code op, assay_uop_code flags) {
  unsigned width = lift.bytes(0);
  Reg a = lift.read_register(0), b = lift.read_register(1);
  Reg result = lift.make3(op, width, a, b, kFlagsRegister);
  lift.emit3(flags, width, kFlagsRegister, a, b, kFlagsRegister);
  lift.finish(0, result);
  return true;
}

// adcx, adox: one flag alone is carry.
bool with_one_flag(Lift &lift, unsigned flag_bit) {
  unsigned width = lift.bytes(0);
  Reg a = lift.read_register(0), b = lift.read_register(1);
  Reg carry = lift.make(ASSAY_UOP_shr, 8, value(kFlagsRegister), Operand::of(flag_bit));
  Reg result = lift.make3(ASSAY_UOP_add_carry, width, a, b, carry);
  Reg flags = lift.make3(ASSAY_UOP_flags_add_carry, width, a, b, carry);
  Reg bit = lift.make(ASSAY_UOP_and, 8, value(flags), Operand::of(1));
  bit = lift.make(ASSAY_UOP_shl, 8, value(bit), Operand::of(flag_bit));
  Reg rest = lift.make(ASSAY_UOP_and, 8, value(kFlagsRegister), Operand::of(~(1LL << flag_bit)));
  lift.emit(ASSAY_UOP_or, 8, kFlagsRegister, value(rest), value(bit));
  lift.finish(0, result);
  return true;
}

bool step(Lift &lift, assay_uop_code op, assay_uop_code flags) {
  unsigned width = lift.bytes(0);
  Reg a = lift.read_register(0);
  lift.emit(flags, width, kFlagsRegister, value(a), value(kFlagsRegister));
  Reg result = lift.destination(0);
  lift.emit(op, width, result, value(a), Operand::of(1));
  lift.finish(0, result);
  return true;
}

bool negate(Lift &lift) {
  unsigned width = lift.bytes(0);
  Reg a = lift.read_register(0);
  lift.emit(ASSAY_UOP_flags_sub, width, kFlagsRegister, {}, value(a));
  Reg result = lift.destination(0);
  lift.emit(ASSAY_UOP_neg, width, result, value(a));
  lift.finish(0, result);
  return true;
}

// rdx:rax or ax of an operand of so many bytes: the low half goes to al, ax, eax, rax, the high one
// to ah, dx, edx, rdx.
void put_wide(Lift &lift, unsigned width, Reg low, Reg high) {
  constexpr Reg rax = ASSAY_REG_RAX, rdx = ASSAY_REG_RDX;
  if (width == 1) {
    lift.emit(ASSAY_UOP_put8, 8, rax, value(rax), value(low));
    lift.emit(ASSAY_UOP_put8h, 8, rax, value(rax), value(high));
  } else if (width == 2) {
    lift.emit(ASSAY_UOP_put16, 8, rax, value(rax), value(low));
    lift.emit(ASSAY_UOP_put16, 8, rdx, value(rdx), value(high));
  } else {
    lift.emit(ASSAY_UOP_copy, width, rax, value(low));
    lift.emit(ASSAY_UOP_copy, width, rdx, value(high));
  }
}

bool multiply_wide(Lift &lift, bool is_signed) {
  unsigned width = lift.bytes(0);
  Reg b = lift.read_register(0), a = ASSAY_REG_RAX;
  Reg low = lift.make(ASSAY_UOP_mul, width, value(a), value(b));
  Reg high = lift.make(is_signed ? ASSAY_UOP_mul_high_signed : ASSAY_UOP_mul_high, width, value(a),
                       value(b));
  if (is_signed)
    lift.emit(ASSAY_UOP_mul_carry_signed, width, kFlagsRegister, value(low), value(high));
  else
    lift.emit(ASSAY_UOP_mul_carry, width, kFlagsRegister, value(high));
  put_wide(lift, width, low, high);
  return true;
}

bool multiply(Lift &lift) {
  if (lift.operand_count == 1)
    return multiply_wide(lift, true);
  unsigned width = lift.bytes(0), first = lift.operand_count == 3 ? 1 : 0;
  Reg a = lift.read_register(first);
  Operand b = lift.read(first + 1);
  Reg low = lift.make(ASSAY_UOP_mul, width, value(a), b);
  Reg high = lift.make(ASSAY_UOP_mul_high_signed, width, value(a), b);
  lift.emit(ASSAY_UOP_mul_carry_signed, width, kFlagsRegister, value(low), value(high));
  lift.finish(0, low);
  return true;
}

bool divide(Lift &lift, assay_uop_code quotient, assay_uop_code remainder) {
  unsigned width = lift.bytes(0);
  Reg divisor = lift.read_register(0), low = ASSAY_REG_RAX, high = ASSAY_REG_RDX;
  if (width == 1)
    high = lift.make(ASSAY_UOP_shr, 2, value(low), Operand::of(8));
  Reg q = lift.make3(quotient, width, low, high, divisor);
  Reg r = lift.make3(remainder, width, low, high, divisor);
  put_wide(lift, width, q, r);
  return true;
}

// A load that is zero-extended into the whole register needs no temporary.
bool load_whole(Lift &lift) {
  if (!lift.is_register(0) || lift.bytes(0) < 4 || !lift.is_memory(1))
    return false;
  Address address = lift.address_of(lift.operand(1));
  lift.access(lift.bytes(1), false);
  lift.load(register_of(lift.operand(0).reg.value), lift.bytes(1), address);
  return true;
}

bool extend(Lift &lift, bool is_signed) {
  unsigned from = lift.bytes(1), to = lift.bytes(0);
  Reg a = lift.read_register(1);
  Reg result = lift.destination(0);
  if (is_signed)
    lift.emit3(ASSAY_UOP_sign_extend, to, result, a, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
               static_cast<int32_t>(64 - 8 * from));
  else
    lift.emit(ASSAY_UOP_copy, from, result, value(a));
  lift.finish(0, result);
  return true;
}

// cbw, cwde, cdqe: rax from its lower half.
bool extend_accumulator(Lift &lift, unsigned from) {
  constexpr Reg rax = ASSAY_REG_RAX;
  Reg result = from == 1 ? lift.temporary() : rax;
  lift.emit3(ASSAY_UOP_sign_extend, 2 * from, result, rax, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
             static_cast<int32_t>(64 - 8 * from));
  if (from == 1)
    lift.emit(ASSAY_UOP_put16, 8, rax, value(rax), value(result));
  return true;
}

// cwd, cdq, cqo: rdx from the sign of rax.
bool sign_to_rdx(Lift &lift, unsigned width) {
  constexpr Reg rdx = ASSAY_REG_RDX;
  Reg result = width == 2 ? lift.temporary() : rdx;
  Reg sign = lift.make3(ASSAY_UOP_sign_extend, 8, ASSAY_REG_RAX, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                        static_cast<int32_t>(64 - 8 * width));
  lift.emit(ASSAY_UOP_sar, 8, sign, value(sign), Operand::of(63));
  lift.emit(ASSAY_UOP_copy, width, result, value(sign));
  if (width == 2)
    lift.emit(ASSAY_UOP_put16, 8, rdx, value(rdx), value(result));
  return true;
}

bool exchange(Lift &lift) {
  unsigned width = lift.bytes(0);
  Reg a = lift.make(ASSAY_UOP_copy, width, lift.read(0));
  Reg b = lift.make(ASSAY_UOP_copy, width, lift.read(1));
  lift.finish(0, b);
  lift.finish(1, a);
  return true;
}

bool exchange_add(Lift &lift) {
  unsigned width = lift.bytes(0);
  Reg a = lift.make(ASSAY_UOP_copy, width, lift.read(0));
  Reg b = lift.read_register(1);
  lift.emit(ASSAY_UOP_flags_add, width, kFlagsRegister, value(a), value(b));
  Reg sum = lift.make(ASSAY_UOP_add, width, value(a), value(b));
  // Memory before a register that its address may be made of; of two registers the sum last.
  if (lift.is_memory(0))
    lift.finish(0, sum);
  lift.finish(1, a);
  if (lift.is_register(0))
    lift.finish(0, sum);
  return true;
}

// If the accumulator equals operand 0, operand 0 becomes operand 1; else the accumulator becomes
// operand 0. Memory is written back in either case, as the processor does.
bool compare_exchange(Lift &lift) {
  unsigned width = lift.bytes(0);
  constexpr Reg rax = ASSAY_REG_RAX;
  Reg old = lift.make(ASSAY_UOP_copy, width, lift.read(0));
  Reg wanted = lift.read_register(1);
  lift.emit(ASSAY_UOP_flags_sub, width, kFlagsRegister, value(rax), value(old));
  Reg equal = lift.make(ASSAY_UOP_if_e, 8, value(kFlagsRegister));
  Reg put = lift.make3(ASSAY_UOP_select, width, wanted, old, equal);
  Reg accumulator = lift.make3(ASSAY_UOP_select, width, rax, old, equal);
  if (lift.is_memory(0)) // before rax, which its address may be made of
    lift.finish(0, put);
  if (width == 8)
    lift.emit(ASSAY_UOP_copy, 8, rax, value(accumulator));
  else if (width == 4) // untouched, not zero-extended, if equal
    lift.emit3(ASSAY_UOP_select, 8, rax, rax, accumulator, equal);
  else
    lift.emit(width == 2 ? ASSAY_UOP_put16 : ASSAY_UOP_put8, 8, rax, value(rax),
              value(accumulator));
  if (lift.is_memory(0))
    return true;
  Reg to = register_of(lift.operand(0).reg.value);
  if (width == 4) // untouched too, unless equal
    lift.emit3(ASSAY_UOP_select, 8, to, put, to, equal);
  else
    lift.finish(0, put);
  return true;
}

bool compare_exchange_wide(Lift &lift) {
  Address low = lift.address_of(lift.operand(0)), high = low;
  high.offset += 8;
  lift.access(16, false);
  Reg old_low = lift.temporary(), old_high = lift.temporary();
  lift.load(old_low, 8, low);
  lift.load(old_high, 8, high);
  Reg differ = lift.make(ASSAY_UOP_xor, 8, value(old_low), value(ASSAY_REG_RAX));
  Reg differ_high = lift.make(ASSAY_UOP_xor, 8, value(old_high), value(ASSAY_REG_RDX));
  Reg differ_any = lift.make(ASSAY_UOP_or, 8, value(differ), value(differ_high));
  Reg equal = lift.make(ASSAY_UOP_is_zero, 8, value(differ_any));
  Reg put_low = lift.make3(ASSAY_UOP_select, 8, ASSAY_REG_RBX, old_low, equal);
  Reg put_high = lift.make3(ASSAY_UOP_select, 8, ASSAY_REG_RCX, old_high, equal);
  lift.access(16, true);
  lift.store(put_low, 8, low);
  lift.store(put_high, 8, high);
  lift.emit3(ASSAY_UOP_select, 8, ASSAY_REG_RAX, ASSAY_REG_RAX, old_low, equal);
  lift.emit3(ASSAY_UOP_select, 8, ASSAY_REG_RDX, ASSAY_REG_RDX, old_high, equal);
  Reg zero = lift.make(ASSAY_UOP_shl, 8, value(equal), Operand::of(6));
  Reg rest = lift.make(ASSAY_UOP_and, 8, value(kFlagsRegister), Operand::of(~0x40LL));
  lift.emit(ASSAY_UOP_or, 8, kFlagsRegister, value(rest), value(zero));
  return true;
}

bool push(Lift &lift) {
  unsigned width = lift.decoded.operand_width / 8;
  if (lift.is_register(0) &&
      ZydisRegisterGetClass(lift.operand(0).reg.value) == ZYDIS_REGCLASS_SEGMENT)
    return false;
  Reg from = lift.read_register(0);
  Address top{.base = ASSAY_REG_RSP, .offset = -static_cast<int32_t>(width)};
  lift.access(width, true);
  lift.store(from, width, top);
  lift.emit(ASSAY_UOP_sub, 8, ASSAY_REG_RSP, value(ASSAY_REG_RSP), Operand::of(width));
  return true;
}

bool pop(Lift &lift) {
  unsigned width = lift.decoded.operand_width / 8;
  if (lift.is_register(0) &&
      ZydisRegisterGetClass(lift.operand(0).reg.value) == ZYDIS_REGCLASS_SEGMENT)
    return false;
  bool whole =
      lift.is_register(0) && width == 8 && register_of(lift.operand(0).reg.value) != ASSAY_REG_RSP;
  Reg taken = whole ? register_of(lift.operand(0).reg.value) : lift.temporary();
  lift.access(width, false);
  lift.load(taken, width, {.base = ASSAY_REG_RSP});
  lift.emit(ASSAY_UOP_add, 8, ASSAY_REG_RSP, value(ASSAY_REG_RSP), Operand::of(width));
  if (!whole)
    lift.finish(0, taken);
  return true;
}

// With frames within frames it reads and pushes pointers to the outer ones: no compiler makes that.
bool enter(Lift &lift) {
  constexpr uint64_t kLevels = 31;
  if (lift.decoded.operand_width != 64 || lift.constant(1) & kLevels)
    return false;
  lift.access(8, true);
  lift.store(ASSAY_REG_RBP, 8, {.base = ASSAY_REG_RSP, .offset = -8});
  lift.emit(ASSAY_UOP_sub, 8, ASSAY_REG_RBP, value(ASSAY_REG_RSP), Operand::of(8));
  const auto locals = static_cast<int64_t>(lift.constant(0));
  lift.emit(ASSAY_UOP_sub, 8, ASSAY_REG_RSP, value(ASSAY_REG_RBP), Operand::of(locals));
  return true;
}

bool leave(Lift &lift) {
  if (lift.decoded.operand_width != 64)
    return false;
  lift.access(8, false);
  Reg taken = lift.temporary();
  lift.load(taken, 8, {.base = ASSAY_REG_RBP});
  lift.emit(ASSAY_UOP_add, 8, ASSAY_REG_RSP, value(ASSAY_REG_RBP), Operand::of(8));
  lift.emit(ASSAY_UOP_copy, 8, ASSAY_REG_RBP, value(taken));
  return true;
}

bool is_segment_move(const Lift &lift) {
  for (unsigned i = 0; i < lift.operand_count; i++)
    if (lift.is_register(i)) {
      auto kind = ZydisRegisterGetClass(lift.operand(i).reg.value);
      if (kind == ZYDIS_REGCLASS_SEGMENT || kind == ZYDIS_REGCLASS_CONTROL ||
          kind == ZYDIS_REGCLASS_DEBUG)
        return true;
    }
  return false;
}

// The condition of a cmovcc or setcc.
std::optional<assay_uop_code> condition_of(ZydisMnemonic mnemonic) {
  static constexpr ZydisMnemonic kMoves[] = {
      ZYDIS_MNEMONIC_CMOVO, ZYDIS_MNEMONIC_CMOVNO, ZYDIS_MNEMONIC_CMOVB,  ZYDIS_MNEMONIC_CMOVNB,
      ZYDIS_MNEMONIC_CMOVZ, ZYDIS_MNEMONIC_CMOVNZ, ZYDIS_MNEMONIC_CMOVBE, ZYDIS_MNEMONIC_CMOVNBE,
      ZYDIS_MNEMONIC_CMOVS, ZYDIS_MNEMONIC_CMOVNS, ZYDIS_MNEMONIC_CMOVP,  ZYDIS_MNEMONIC_CMOVNP,
      ZYDIS_MNEMONIC_CMOVL, ZYDIS_MNEMONIC_CMOVNL, ZYDIS_MNEMONIC_CMOVLE, ZYDIS_MNEMONIC_CMOVNLE};
  static constexpr ZydisMnemonic kSets[] = {
      ZYDIS_MNEMONIC_SETO, ZYDIS_MNEMONIC_SETNO, ZYDIS_MNEMONIC_SETB,  ZYDIS_MNEMONIC_SETNB,
      ZYDIS_MNEMONIC_SETZ, ZYDIS_MNEMONIC_SETNZ, ZYDIS_MNEMONIC_SETBE, ZYDIS_MNEMONIC_SETNBE,
      ZYDIS_MNEMONIC_SETS, ZYDIS_MNEMONIC_SETNS, ZYDIS_MNEMONIC_SETP,  ZYDIS_MNEMONIC_SETNP,
      ZYDIS_MNEMONIC_SETL, ZYDIS_MNEMONIC_SETNL, ZYDIS_MNEMONIC_SETLE, ZYDIS_MNEMONIC_SETNLE};
  auto moved = condition_among(kMoves, mnemonic);
  return moved ? moved : condition_among(kSets, mnemonic);
}

bool conditional(Lift &lift) {
  auto test = condition_of(lift.decoded.mnemonic);
  if (!test)
    return false;
  Reg holds = lift.make(*test, 8, value(kFlagsRegister));
  if (lift.operand_count == 1) {
    lift.finish(0, holds);
    return true;
  }
  unsigned width = lift.bytes(0);
  Reg from = lift.read_register(1), old = lift.read_register(0);
  Reg result = lift.destination(0);
  lift.emit3(ASSAY_UOP_select, width, result, from, old, holds);
  lift.finish(0, result);
  return true;
}

} // namespace

// NOLINTNEXTLINE(readability-function-size): a flat table
bool lift_integer(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_MOV:
    if (is_segment_move(lift))
      return false;
    if (!load_whole(lift))
      lift.write(0, lift.read(1));
    return true;
  case ZYDIS_MNEMONIC_MOVNTI: lift.write(0, lift.read(1)); return true;
  case ZYDIS_MNEMONIC_MOVZX: return load_whole(lift) || extend(lift, false);
  case ZYDIS_MNEMONIC_MOVSX:
  case ZYDIS_MNEMONIC_MOVSXD: return extend(lift, true);
  case ZYDIS_MNEMONIC_LEA: {
    Address address = lift.address_of(lift.operand(1));
    Reg result = lift.destination(0);
    lift.lea(result, lift.bytes(0), address);
    lift.finish(0, result);
    return true;
  }
  case ZYDIS_MNEMONIC_ADD: return arithmetic(lift, ASSAY_UOP_add, ASSAY_UOP_flags_add);
  case ZYDIS_MNEMONIC_SUB: return arithmetic(lift, ASSAY_UOP_sub, ASSAY_UOP_flags_sub);
  case ZYDIS_MNEMONIC_CMP: return arithmetic(lift, ASSAY_UOP_sub, ASSAY_UOP_flags_sub, false);
  case ZYDIS_MNEMONIC_TEST: return arithmetic(lift, ASSAY_UOP_and, ASSAY_UOP_flags_and, false);
  case ZYDIS_MNEMONIC_ADC: return with_carry(lift, ASSAY_UOP_add_carry, ASSAY_UOP_flags_add_carry);
  case ZYDIS_MNEMONIC_SBB:
    return with_carry(lift, ASSAY_UOP_sub_borrow, ASSAY_UOP_flags_sub_borrow);
  case ZYDIS_MNEMONIC_ADCX: return with_one_flag(lift, 0);
  case ZYDIS_MNEMONIC_ADOX: return with_one_flag(lift, 11);
  case ZYDIS_MNEMONIC_AND: return logic(lift, ASSAY_UOP_and);
  case ZYDIS_MNEMONIC_OR: return logic(lift, ASSAY_UOP_or);
  case ZYDIS_MNEMONIC_XOR:
    if (lift.is_register(0) && lift.is_register(1) &&
        lift.operand(0).reg.value == lift.operand(1).reg.value && lift.bytes(0) >= 4) {
      lift.write(0, Operand::of(0)); // depends on nothing
      lift.emit(ASSAY_UOP_flags_and, 8, kFlagsRegister, {}, {});
      return true;
    }
    return logic(lift, ASSAY_UOP_xor);
  case ZYDIS_MNEMONIC_NOT: {
    Reg a = lift.read_register(0), result = lift.destination(0);
    lift.emit(ASSAY_UOP_not, lift.bytes(0), result, value(a));
    lift.finish(0, result);
    return true;
  }
  case ZYDIS_MNEMONIC_NEG: return negate(lift);
  case ZYDIS_MNEMONIC_INC: return step(lift, ASSAY_UOP_add, ASSAY_UOP_flags_inc);
  case ZYDIS_MNEMONIC_DEC: return step(lift, ASSAY_UOP_sub, ASSAY_UOP_flags_dec);
  case ZYDIS_MNEMONIC_IMUL: return multiply(lift);
  case ZYDIS_MNEMONIC_MUL: return multiply_wide(lift, false);
  case ZYDIS_MNEMONIC_MULX: {
    unsigned width = lift.bytes(0);
    Reg a = ASSAY_REG_RDX, b = lift.read_register(2);
    Reg low = lift.make(ASSAY_UOP_mul, width, value(a), value(b));
    Reg high = lift.make(ASSAY_UOP_mul_high, width, value(a), value(b));
    lift.finish(1, low);
    lift.finish(0, high);
    return true;
  }
  case ZYDIS_MNEMONIC_DIV: return divide(lift, ASSAY_UOP_div, ASSAY_UOP_rem);
  case ZYDIS_MNEMONIC_IDIV: return divide(lift, ASSAY_UOP_div_signed, ASSAY_UOP_rem_signed);
  case ZYDIS_MNEMONIC_CBW: return extend_accumulator(lift, 1);
  case ZYDIS_MNEMONIC_CWDE: return extend_accumulator(lift, 2);
  case ZYDIS_MNEMONIC_CDQE: return extend_accumulator(lift, 4);
  case ZYDIS_MNEMONIC_CWD: return sign_to_rdx(lift, 2);
  case ZYDIS_MNEMONIC_CDQ: return sign_to_rdx(lift, 4);
  case ZYDIS_MNEMONIC_CQO: return sign_to_rdx(lift, 8);
  case ZYDIS_MNEMONIC_XCHG: return exchange(lift);
  case ZYDIS_MNEMONIC_XADD: return exchange_add(lift);
  case ZYDIS_MNEMONIC_CMPXCHG: return compare_exchange(lift);
  case ZYDIS_MNEMONIC_CMPXCHG16B: return compare_exchange_wide(lift);
  case ZYDIS_MNEMONIC_PUSH: return push(lift);
  case ZYDIS_MNEMONIC_POP: return pop(lift);
  case ZYDIS_MNEMONIC_ENTER: return enter(lift);
  case ZYDIS_MNEMONIC_LEAVE: return leave(lift);
  case ZYDIS_MNEMONIC_BSWAP:
    if (lift.bytes(0) == 2) // undefined
      return false;
    lift.emit(ASSAY_UOP_byte_swap, lift.bytes(0), lift.read_register(0),
              value(lift.read_register(0)));
    return true;
  case ZYDIS_MNEMONIC_MOVBE: {
    Reg swapped = lift.make(ASSAY_UOP_byte_swap, lift.bytes(0), lift.read(1));
    lift.finish(0, swapped);
    return true;
  }
  case ZYDIS_MNEMONIC_PAUSE: // with r8 in its encoding, AMD's processors exchange that with rax
    return !lift.decoded.raw.rex.B;
  case ZYDIS_MNEMONIC_NOP:
  case ZYDIS_MNEMONIC_ENDBR64:
  case ZYDIS_MNEMONIC_PREFETCH:
  case ZYDIS_MNEMONIC_PREFETCHNTA:
  case ZYDIS_MNEMONIC_PREFETCHT0:
  case ZYDIS_MNEMONIC_PREFETCHT1:
  case ZYDIS_MNEMONIC_PREFETCHT2:
  case ZYDIS_MNEMONIC_PREFETCHW:
  case ZYDIS_MNEMONIC_LFENCE:
  case ZYDIS_MNEMONIC_MFENCE:
  case ZYDIS_MNEMONIC_SFENCE:
  case ZYDIS_MNEMONIC_RDSSPD: // without shadow stacks
  case ZYDIS_MNEMONIC_RDSSPQ: return true;
  default: return conditional(lift);
  }
}

} // namespace binary
