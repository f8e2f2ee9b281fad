// Shifts, rotations, bit tests and bit counts.
//
// A shift whose masked count is 0 leaves the flags. Where the count is a constant that is known here;
// else `select` says it.

#include "binary/lift.h"

namespace binary {
namespace {

constexpr Reg kFlagsRegister = ASSAY_REG_FLAGS;

unsigned count_mask(unsigned width) {
  return width == 8 ? 63 : 31;
}

// Sets the flags to `changed` unless the count is 0.
void set_flags_if_counted(Lift &lift, unsigned width, Operand count, Reg changed) {
  if (count.is_constant()) {
    lift.emit(ASSAY_UOP_copy, 8, kFlagsRegister, value(changed));
    return;
  }
  Reg masked = lift.make(ASSAY_UOP_and, 8, count, Operand::of(count_mask(width)));
  lift.emit3(ASSAY_UOP_select, 8, kFlagsRegister, changed, kFlagsRegister, masked);
}

bool counts_nothing(unsigned width, Operand count) {
  return count.is_constant() && (static_cast<uint64_t>(count.constant) & count_mask(width)) == 0;
}

// The count: the last operand, or 1 where none is written.
Operand count_of(Lift &lift, unsigned index) {
  return lift.operand_count > index ? lift.read(index) : Operand::of(1);
}

bool shift(Lift &lift, assay_uop_code op, assay_uop_code carry) {
  unsigned width = lift.bytes(0);
  Operand count = count_of(lift, 1);
  Reg a = lift.read_register(0);
  if (counts_nothing(width, count)) {
    lift.finish(0, lift.make(ASSAY_UOP_copy, width, value(a)));
    return true;
  }
  Reg result = lift.make(op, width, value(a), count);
  Reg carried = lift.make(carry, width, value(a), count);
  Reg flags = lift.make(ASSAY_UOP_flags_result, width, value(result), value(carried));
  set_flags_if_counted(lift, width, count, flags);
  lift.finish(0, result);
  return true;
}

bool rotate(Lift &lift, assay_uop_code op, assay_uop_code carry) {
  unsigned width = lift.bytes(0);
  Operand count = count_of(lift, 1);
  Reg a = lift.read_register(0);
  Reg result = lift.make(op, width, value(a), count);
  if (!counts_nothing(width, count)) {
    Reg carried = lift.make(carry, width, value(result));
    Reg flags = lift.make(ASSAY_UOP_flags_put_overflow, 8, value(kFlagsRegister), value(carried));
    set_flags_if_counted(lift, width, count, flags);
  }
  lift.finish(0, result);
  return true;
}

bool double_shift(Lift &lift, assay_uop_code op, assay_uop_code carry) {
  unsigned width = lift.bytes(0);
  Operand count = lift.read(2);
  Reg a = lift.read_register(0), b = lift.read_register(1), n = lift.in_register(count);
  Reg result = lift.make3(op, width, a, b, n);
  if (!counts_nothing(width, count)) {
    // CF is of the bits of a, OF of whether its sign changed.
    Reg carried = lift.make3(carry, width, a, result, n);
    Reg flags = lift.make(ASSAY_UOP_flags_result, width, value(result), value(carried));
    set_flags_if_counted(lift, width, count, flags);
  }
  lift.finish(0, result);
  return true;
}

// sarx, shlx, shrx, rorx: no flags.
bool shift_apart(Lift &lift, assay_uop_code op) {
  Operand count = lift.read(2);
  Reg a = lift.read_register(1), result = lift.destination(0);
  lift.emit(op, lift.bytes(0), result, value(a), count);
  lift.finish(0, result);
  return true;
}

// bt and its kin; `op` is what becomes of the bit.
bool bit_test(Lift &lift, assay_uop_code op) {
  unsigned width = lift.bytes(0);
  Operand which = lift.read(1);
  if (lift.is_memory(0) && !which.is_constant()) {
    // A string of bits: the operand is the one of its width that holds the bit.
    Address address = lift.address_of(lift.operand(0));
    Reg base = lift.temporary();
    lift.lea(base, 8, address);
    Reg wide = lift.make3(ASSAY_UOP_sign_extend, 8, which.reg, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
                          static_cast<int32_t>(64 - 8 * width));
    Reg bytes = lift.make(ASSAY_UOP_sar, 8, value(wide), Operand::of(3));
    Reg whole =
        lift.make(ASSAY_UOP_and, 8, value(bytes), Operand::of(-static_cast<int64_t>(width)));
    Address element{.base = base, .index = whole};
    Reg a = lift.temporary();
    lift.access(width, false);
    lift.load(a, width, element);
    Reg carry = lift.make(ASSAY_UOP_bit_carry, width, value(a), which);
    lift.emit(ASSAY_UOP_flags_put_carry, 8, kFlagsRegister, value(kFlagsRegister), value(carry));
    if (op != ASSAY_UOP_copy) {
      Reg result = lift.make(op, width, value(a), which);
      lift.access(width, true);
      lift.store(result, width, element);
    }
    return true;
  }
  Reg a = lift.read_register(0);
  Reg carry = lift.make(ASSAY_UOP_bit_carry, width, value(a), which);
  lift.emit(ASSAY_UOP_flags_put_carry, 8, kFlagsRegister, value(kFlagsRegister), value(carry));
  if (op != ASSAY_UOP_copy) {
    Reg result = lift.make(op, width, value(a), which);
    lift.finish(0, result);
  }
  return true;
}

bool scan(Lift &lift, assay_uop_code op) {
  unsigned width = lift.bytes(0);
  Reg a = lift.read_register(1), old = lift.read_register(0);
  lift.emit(ASSAY_UOP_flags_zero, width, kFlagsRegister, value(a));
  if (width != 4) {
    Reg result = lift.make(op, width, value(a), value(old));
    lift.finish(0, result);
    return true;
  }
  // Where nothing is found the whole register stays, its high half too.
  Reg result = lift.make(op, 4, value(a), value(old));
  Reg some = lift.make(ASSAY_UOP_not_zero, 4, value(a));
  lift.emit3(ASSAY_UOP_select, 8, old, result, old, some);
  return true;
}

// tzcnt, lzcnt: the width where there is no bit.
bool count_zeros(Lift &lift, bool leading) {
  unsigned width = lift.bytes(0);
  auto bits = int64_t{8} * width;
  Reg a = lift.read_register(1);
  Reg result;
  if (leading) {
    Reg last = lift.make(ASSAY_UOP_last_bit, width, value(a), Operand::of(-1));
    Reg most = lift.in_register(Operand::of(bits - 1));
    result = lift.make(ASSAY_UOP_sub, width, value(most), value(last));
  } else {
    result = lift.make(ASSAY_UOP_first_bit, width, value(a), Operand::of(bits));
  }
  lift.emit(ASSAY_UOP_flags_count, width, kFlagsRegister, value(a), value(result));
  lift.finish(0, result);
  return true;
}

// CF alone, beside ZF and SF of the result.
void flags_of_field(Lift &lift, unsigned width, Reg result, Reg carry) {
  Reg cleared = lift.make(ASSAY_UOP_and, 8, value(carry), Operand::of(1));
  lift.emit(ASSAY_UOP_flags_result, width, kFlagsRegister, value(result), value(cleared));
}

// blsi, blsr, blsmsk: a combined with -a or a - 1.
bool lowest_bit(Lift &lift, assay_uop_code op, bool with_negated) {
  unsigned width = lift.bytes(0);
  Reg a = lift.read_register(1);
  Reg other = with_negated ? lift.make(ASSAY_UOP_neg, width, value(a))
                           : lift.make(ASSAY_UOP_sub, width, value(a), Operand::of(1));
  Reg result = lift.make(op, width, value(a), value(other));
  Reg carry = lift.make(with_negated ? ASSAY_UOP_not_zero : ASSAY_UOP_is_zero, width, value(a));
  flags_of_field(lift, width, result, carry);
  lift.finish(0, result);
  return true;
}

bool without_flags(Lift &lift, assay_uop_code op) {
  Reg a = lift.read_register(1);
  Operand b = lift.read(2);
  Reg result = lift.destination(0);
  lift.emit(op, lift.bytes(0), result, value(a), b);
  lift.finish(0, result);
  return true;
}

bool low_bits(Lift &lift) {
  unsigned width = lift.bytes(0);
  Reg a = lift.read_register(1), n = lift.read_register(2);
  Reg result = lift.make(ASSAY_UOP_low_bits, width, value(a), value(n));
  // CF if the count is not below the width.
  Reg count = lift.make(ASSAY_UOP_copy, 1, value(n));
  Reg most = lift.in_register(Operand::of(8 * width - 1));
  Reg compared = lift.make(ASSAY_UOP_flags_sub, 8, value(most), value(count));
  flags_of_field(lift, width, result, compared);
  lift.finish(0, result);
  return true;
}

bool rotate_through_carry(Lift &lift, bool left) {
  // By one only: the counted forms are rare, and stay opaque.
  unsigned width = lift.bytes(0), top = 8 * width - 1;
  Operand count = count_of(lift, 1);
  if (!count.is_constant() || (count.constant & count_mask(width)) != 1)
    return false;
  Reg a = lift.read_register(0);
  Reg old = lift.make(ASSAY_UOP_and, 8, value(kFlagsRegister), Operand::of(1));
  Reg cut = lift.make(ASSAY_UOP_copy, width, value(a));
  Reg shifted = lift.make(left ? ASSAY_UOP_shl : ASSAY_UOP_shr, width, value(cut), Operand::of(1));
  Reg entering = left ? old : lift.make(ASSAY_UOP_shl, 8, value(old), Operand::of(top));
  Reg result = lift.make(ASSAY_UOP_or, width, value(shifted), value(entering));
  Reg out = left ? lift.make(ASSAY_UOP_shr, 8, value(cut), Operand::of(top))
                 : lift.make(ASSAY_UOP_and, 8, value(cut), Operand::of(1));
  Reg changed = lift.make(ASSAY_UOP_xor, width, value(cut), value(result));
  Reg sign = lift.make(ASSAY_UOP_shr, width, value(changed), Operand::of(top));
  Reg overflow = lift.make(ASSAY_UOP_shl, 8, value(sign), Operand::of(11));
  Reg both = lift.make(ASSAY_UOP_or, 8, value(out), value(overflow));
  lift.emit(ASSAY_UOP_flags_put_overflow, 8, kFlagsRegister, value(kFlagsRegister), value(both));
  lift.finish(0, result);
  return true;
}

} // namespace

bool lift_bits(Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_SHL: return shift(lift, ASSAY_UOP_shl, ASSAY_UOP_shl_carry);
  case ZYDIS_MNEMONIC_SHR: return shift(lift, ASSAY_UOP_shr, ASSAY_UOP_shr_carry);
  case ZYDIS_MNEMONIC_SAR: return shift(lift, ASSAY_UOP_sar, ASSAY_UOP_sar_carry);
  case ZYDIS_MNEMONIC_ROL: return rotate(lift, ASSAY_UOP_rol, ASSAY_UOP_rol_carry);
  case ZYDIS_MNEMONIC_ROR: return rotate(lift, ASSAY_UOP_ror, ASSAY_UOP_ror_carry);
  case ZYDIS_MNEMONIC_RCL: return rotate_through_carry(lift, true);
  case ZYDIS_MNEMONIC_RCR: return rotate_through_carry(lift, false);
  case ZYDIS_MNEMONIC_SHLD: return double_shift(lift, ASSAY_UOP_shld, ASSAY_UOP_shld_carry);
  case ZYDIS_MNEMONIC_SHRD: return double_shift(lift, ASSAY_UOP_shrd, ASSAY_UOP_shrd_carry);
  case ZYDIS_MNEMONIC_SHLX: return shift_apart(lift, ASSAY_UOP_shl);
  case ZYDIS_MNEMONIC_SHRX: return shift_apart(lift, ASSAY_UOP_shr);
  case ZYDIS_MNEMONIC_SARX: return shift_apart(lift, ASSAY_UOP_sar);
  case ZYDIS_MNEMONIC_RORX: return shift_apart(lift, ASSAY_UOP_ror);
  case ZYDIS_MNEMONIC_BT: return bit_test(lift, ASSAY_UOP_copy);
  case ZYDIS_MNEMONIC_BTS: return bit_test(lift, ASSAY_UOP_bit_set);
  case ZYDIS_MNEMONIC_BTR: return bit_test(lift, ASSAY_UOP_bit_clear);
  case ZYDIS_MNEMONIC_BTC: return bit_test(lift, ASSAY_UOP_bit_flip);
  case ZYDIS_MNEMONIC_BSF: return scan(lift, ASSAY_UOP_first_bit);
  case ZYDIS_MNEMONIC_BSR: return scan(lift, ASSAY_UOP_last_bit);
  case ZYDIS_MNEMONIC_TZCNT: return count_zeros(lift, false);
  case ZYDIS_MNEMONIC_LZCNT: return count_zeros(lift, true);
  case ZYDIS_MNEMONIC_POPCNT: {
    Reg a = lift.read_register(1);
    Reg result = lift.make(ASSAY_UOP_ones, lift.bytes(0), value(a));
    lift.emit(ASSAY_UOP_flags_zero, 8, kFlagsRegister, value(result));
    lift.finish(0, result);
    return true;
  }
  case ZYDIS_MNEMONIC_ANDN: {
    unsigned width = lift.bytes(0);
    Reg a = lift.read_register(1), b = lift.read_register(2);
    Reg result = lift.make(ASSAY_UOP_and_not, width, value(a), value(b));
    lift.emit(ASSAY_UOP_flags_and, width, kFlagsRegister, value(result), value(result));
    lift.finish(0, result);
    return true;
  }
  case ZYDIS_MNEMONIC_BLSI: return lowest_bit(lift, ASSAY_UOP_and, true);
  case ZYDIS_MNEMONIC_BLSR: return lowest_bit(lift, ASSAY_UOP_and, false);
  case ZYDIS_MNEMONIC_BLSMSK: return lowest_bit(lift, ASSAY_UOP_xor, false);
  case ZYDIS_MNEMONIC_BZHI: return low_bits(lift);
  case ZYDIS_MNEMONIC_BEXTR: {
    unsigned width = lift.bytes(0);
    Reg a = lift.read_register(1), control = lift.read_register(2);
    Reg result = lift.make(ASSAY_UOP_bit_field, width, value(a), value(control));
    lift.emit(ASSAY_UOP_flags_zero, width, kFlagsRegister, value(result));
    lift.finish(0, result);
    return true;
  }
  case ZYDIS_MNEMONIC_PDEP: return without_flags(lift, ASSAY_UOP_deposit);
  case ZYDIS_MNEMONIC_PEXT: return without_flags(lift, ASSAY_UOP_extract);
  case ZYDIS_MNEMONIC_CRC32: {
    Reg crc = lift.read_register(0), data = lift.read_register(1);
    Reg result = lift.make3(ASSAY_UOP_crc32, 4, crc, data, ASSAY_REG_ZERO,
                            static_cast<int32_t>(lift.bytes(1)));
    lift.emit(ASSAY_UOP_copy, 8, crc, value(result));
    return true;
  }
  default: return false;
  }
}

} // namespace binary
