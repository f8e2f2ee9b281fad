// Jumps, calls, string instructions and what sets single flags.
//
// A repeated string instruction is one iteration of its loop, which ends with a branch to itself: that is
// how the processor shows it when it is interrupted or single-stepped, and it makes the instruction
// an ordinary loop of one instruction for what reads micro-ops.

#include "binary/lift.h"

#include <algorithm>
#include <optional>

namespace binary {
namespace {

constexpr Reg kFlagsRegister = ASSAY_REG_FLAGS, kRsp = ASSAY_REG_RSP;

std::optional<assay_uop_code> branch_condition(ZydisMnemonic mnemonic) {
  static constexpr ZydisMnemonic kBranches[] = {
      ZYDIS_MNEMONIC_JO, ZYDIS_MNEMONIC_JNO, ZYDIS_MNEMONIC_JB,  ZYDIS_MNEMONIC_JNB,
      ZYDIS_MNEMONIC_JZ, ZYDIS_MNEMONIC_JNZ, ZYDIS_MNEMONIC_JBE, ZYDIS_MNEMONIC_JNBE,
      ZYDIS_MNEMONIC_JS, ZYDIS_MNEMONIC_JNS, ZYDIS_MNEMONIC_JP,  ZYDIS_MNEMONIC_JNP,
      ZYDIS_MNEMONIC_JL, ZYDIS_MNEMONIC_JNL, ZYDIS_MNEMONIC_JLE, ZYDIS_MNEMONIC_JNLE};
  return condition_among(kBranches, mnemonic);
}

// How far it is to where it goes, from its end.
void take_distance(Lift &lift) {
  lift.instruction.operand = static_cast<uint32_t>(lift.constant(0));
}

void branch_to_operand(Lift &lift, Reg condition) {
  lift.instruction.flow = Flow::branch;
  take_distance(lift);
  lift.branch(condition, lift.instruction.target());
}

// loop and its kin, which keep the flags. With an address-size prefix ecx is counted, and the upper half becomes 0.
bool count_down(Lift &lift, std::optional<assay_uop_code> also = {}) {
  const unsigned width = lift.decoded.address_width / 8;
  lift.emit(ASSAY_UOP_sub, width, ASSAY_REG_RCX, value(ASSAY_REG_RCX), Operand::of(1));
  Reg more = lift.make(ASSAY_UOP_not_zero, width, value(ASSAY_REG_RCX));
  if (also) {
    Reg holds = lift.make(*also, 8, value(kFlagsRegister));
    lift.emit(ASSAY_UOP_and, 8, more, value(more), value(holds));
  }
  branch_to_operand(lift, more);
  return true;
}

// Where a jump or call goes: an operand, read before the stack is written.
Address destination_of(Lift &lift) {
  if (lift.is_constant(0)) {
    take_distance(lift);
    return lift.code_address(lift.instruction.target());
  }
  return {.base = lift.read_register(0)};
}

bool call(Lift &lift) {
  lift.instruction.flow = lift.is_constant(0) ? Flow::call : Flow::indirect_call;
  Address to = destination_of(lift);
  Reg back = lift.temporary();
  lift.lea(back, 8, lift.code_address(lift.instruction.end()));
  lift.access(8, true);
  lift.store(back, 8, {.base = kRsp, .offset = -8});
  if (to.base == kRsp) // call rsp: where it points before the push
    to.base = lift.make(ASSAY_UOP_copy, 8, value(kRsp));
  lift.emit(ASSAY_UOP_sub, 8, kRsp, value(kRsp), Operand::of(8));
  lift.jump(to);
  return true;
}

bool ret(Lift &lift) {
  lift.instruction.flow = Flow::ret;
  Reg to = lift.temporary();
  lift.access(8, false);
  lift.load(to, 8, {.base = kRsp});
  int64_t popped = 8 + (lift.operand_count ? static_cast<int64_t>(lift.constant(0)) : 0);
  lift.emit(ASSAY_UOP_add, 8, kRsp, value(kRsp), Operand::of(popped));
  lift.jump({.base = to});
  return true;
}

enum class Repeat { once, counted, while_equal, while_not_equal };

// One iteration of a string instruction of elements of `width` bytes.
bool string(Lift &lift, unsigned width, bool loads, bool stores, bool compares) {
  if (lift.decoded.address_width != 64)
    return false;
  for (unsigned i = 0; i < lift.decoded.operand_count; i++) // no segment but the usual ones
    if (lift.hidden[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
        (lift.hidden[i].mem.segment == ZYDIS_REGISTER_FS ||
         lift.hidden[i].mem.segment == ZYDIS_REGISTER_GS))
      return false;
  const auto attributes = lift.decoded.attributes;
  Repeat repeat = attributes & ZYDIS_ATTRIB_HAS_REPNE  ? Repeat::while_not_equal
                  : attributes & ZYDIS_ATTRIB_HAS_REPE ? Repeat::while_equal
                  : attributes & ZYDIS_ATTRIB_HAS_REP  ? Repeat::counted
                                                       : Repeat::once;
  constexpr Reg rcx = ASSAY_REG_RCX, rsi = ASSAY_REG_RSI, rdi = ASSAY_REG_RDI, rax = ASSAY_REG_RAX;
  if (repeat != Repeat::once) {
    lift.instruction.repeats = true;
    Reg none = lift.make(ASSAY_UOP_is_zero, 8, value(rcx));
    lift.branch(none, lift.instruction.end());
  }
  Reg step = lift.temporary();
  lift.emit3(ASSAY_UOP_string_step, 8, step, ASSAY_REG_CONTROL, ASSAY_REG_ZERO, ASSAY_REG_ZERO,
             static_cast<int32_t>(width));
  Reg first = rax, second = rax, compared = 0;
  auto load_from = [&](Reg pointer) {
    Reg loaded = lift.temporary();
    lift.access(width, false);
    lift.load(loaded, width, {.base = pointer});
    return loaded;
  };
  if (loads)
    first = load_from(rsi);
  if (compares) {
    second = load_from(rdi);
    compared = lift.make(ASSAY_UOP_flags_sub, width, value(first), value(second));
    if (repeat == Repeat::once)
      lift.emit(ASSAY_UOP_copy, 8, kFlagsRegister, value(compared));
  } else if (stores) {
    lift.access(width, true);
    lift.store(first, width, {.base = rdi});
  } else if (width == 8 || width == 4) {
    lift.emit(ASSAY_UOP_copy, width, rax, value(first));
  } else {
    lift.emit(width == 2 ? ASSAY_UOP_put16 : ASSAY_UOP_put8, 8, rax, value(rax), value(first));
  }
  if (loads)
    lift.emit(ASSAY_UOP_add, 8, rsi, value(rsi), value(step));
  if (stores || compares)
    lift.emit(ASSAY_UOP_add, 8, rdi, value(rdi), value(step));
  if (repeat != Repeat::once) {
    lift.emit(ASSAY_UOP_sub, 8, rcx, value(rcx), Operand::of(1));
    Reg more = lift.make(ASSAY_UOP_not_zero, 8, value(rcx));
    if (compares) {
      Reg holds = lift.make(repeat == Repeat::while_equal ? ASSAY_UOP_if_e : ASSAY_UOP_if_ne, 8,
                            value(compared));
      lift.emit(ASSAY_UOP_and, 8, more, value(more), value(holds));
      // The flags are written by the last iteration alone.
      lift.emit3(ASSAY_UOP_select, 8, kFlagsRegister, kFlagsRegister, compared, more);
    }
    lift.branch(more, lift.instruction.address);
  }
  return true;
}

// Sets, clears or inverts bits of a register of flags.
bool flag(Lift &lift, assay_uop_code op, Reg reg, int64_t bits) {
  lift.emit(op, 8, reg, value(reg), Operand::of(bits));
  return true;
}

constexpr int64_t kStatus = 0x8d5; // the flags in ASSAY_REG_FLAGS

bool push_flags(Lift &lift) {
  // All but the resume and virtual-8086 flags.
  Reg all = lift.make(ASSAY_UOP_or, 8, value(kFlagsRegister), value(ASSAY_REG_CONTROL));
  lift.emit(ASSAY_UOP_and, 8, all, value(all), Operand::of(0xfcffff));
  lift.access(8, true);
  lift.store(all, 8, {.base = kRsp, .offset = -8});
  lift.emit(ASSAY_UOP_sub, 8, kRsp, value(kRsp), Operand::of(8));
  return true;
}

bool pop_flags(Lift &lift) {
  // What a program may not change stays: IF, IOPL and the reserved bits.
  constexpr int64_t kChangeable = 0x244500; // TF, DF, NT, AC, ID
  Reg all = lift.temporary();
  lift.access(8, false);
  lift.load(all, 8, {.base = kRsp});
  lift.emit(ASSAY_UOP_add, 8, kRsp, value(kRsp), Operand::of(8));
  lift.emit(ASSAY_UOP_and, 8, kFlagsRegister, value(all), Operand::of(kStatus));
  Reg kept = lift.make(ASSAY_UOP_and, 8, value(ASSAY_REG_CONTROL), Operand::of(~kChangeable));
  Reg changed = lift.make(ASSAY_UOP_and, 8, value(all), Operand::of(kChangeable));
  lift.emit(ASSAY_UOP_or, 8, ASSAY_REG_CONTROL, value(kept), value(changed));
  return true;
}

bool has_prefix(const Lift &lift, uint8_t wanted) {
  const auto &raw = lift.decoded.raw;
  return std::any_of(raw.prefixes, raw.prefixes + raw.prefix_count,
                     [wanted](const auto &each) { return each.value == wanted; });
}

// With an operand-size prefix, Intel's processors ignore it and AMD's go to an address of 16 bits. A prefix for
// repetition turns loope into loopne, or back, on AMD's (tests/oracle/uop_fuzz); nobody says that it does.
bool depends_on_maker(const Lift &lift) {
  if (lift.decoded.mnemonic == ZYDIS_MNEMONIC_LOOPE ||
      lift.decoded.mnemonic == ZYDIS_MNEMONIC_LOOPNE)
    if (has_prefix(lift, 0xf2) || has_prefix(lift, 0xf3))
      return true;
  switch (lift.decoded.meta.category) {
  case ZYDIS_CATEGORY_COND_BR:
  case ZYDIS_CATEGORY_UNCOND_BR:
  case ZYDIS_CATEGORY_CALL:
  case ZYDIS_CATEGORY_RET:
    return (lift.decoded.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) && !lift.decoded.raw.rex.W;
  default: return false;
  }
}

} // namespace

// NOLINTNEXTLINE(readability-function-size): a flat table
bool lift_control(Lift &lift) {
  if (depends_on_maker(lift)) {
    lift.instruction.flow = Flow::stop;
    lift.instruction.half_known = true;
    return false;
  }
  if (auto test = branch_condition(lift.decoded.mnemonic)) {
    Reg holds = lift.make(*test, 8, value(kFlagsRegister));
    branch_to_operand(lift, holds);
    return true;
  }
  if (lift.decoded.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) {
    lift.instruction.flow = Flow::stop; // to another segment: not in programs of today
    lift.instruction.half_known = lift.decoded.meta.category != ZYDIS_CATEGORY_RET;
    return false;
  }
  bool is_string = lift.decoded.meta.category == ZYDIS_CATEGORY_STRINGOP;
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_JMP:
    lift.instruction.flow = lift.is_constant(0) ? Flow::jump : Flow::indirect_jump;
    lift.jump(destination_of(lift));
    return true;
  case ZYDIS_MNEMONIC_JRCXZ:
    branch_to_operand(lift, lift.make(ASSAY_UOP_is_zero, 8, value(ASSAY_REG_RCX)));
    return true;
  case ZYDIS_MNEMONIC_JECXZ:
    branch_to_operand(lift, lift.make(ASSAY_UOP_is_zero, 4, value(ASSAY_REG_RCX)));
    return true;
  case ZYDIS_MNEMONIC_LOOP: return count_down(lift);
  case ZYDIS_MNEMONIC_LOOPE: return count_down(lift, ASSAY_UOP_if_e);
  case ZYDIS_MNEMONIC_LOOPNE: return count_down(lift, ASSAY_UOP_if_ne);
  case ZYDIS_MNEMONIC_CALL: return call(lift);
  case ZYDIS_MNEMONIC_RET: return ret(lift);
  case ZYDIS_MNEMONIC_MOVSB: return string(lift, 1, true, true, false);
  case ZYDIS_MNEMONIC_MOVSW: return string(lift, 2, true, true, false);
  case ZYDIS_MNEMONIC_MOVSD: return is_string && string(lift, 4, true, true, false);
  case ZYDIS_MNEMONIC_MOVSQ: return string(lift, 8, true, true, false);
  case ZYDIS_MNEMONIC_STOSB: return string(lift, 1, false, true, false);
  case ZYDIS_MNEMONIC_STOSW: return string(lift, 2, false, true, false);
  case ZYDIS_MNEMONIC_STOSD: return string(lift, 4, false, true, false);
  case ZYDIS_MNEMONIC_STOSQ: return string(lift, 8, false, true, false);
  case ZYDIS_MNEMONIC_LODSB: return string(lift, 1, true, false, false);
  case ZYDIS_MNEMONIC_LODSW: return string(lift, 2, true, false, false);
  case ZYDIS_MNEMONIC_LODSD: return string(lift, 4, true, false, false);
  case ZYDIS_MNEMONIC_LODSQ: return string(lift, 8, true, false, false);
  case ZYDIS_MNEMONIC_SCASB: return string(lift, 1, false, false, true);
  case ZYDIS_MNEMONIC_SCASW: return string(lift, 2, false, false, true);
  case ZYDIS_MNEMONIC_SCASD: return string(lift, 4, false, false, true);
  case ZYDIS_MNEMONIC_SCASQ: return string(lift, 8, false, false, true);
  case ZYDIS_MNEMONIC_CMPSB: return string(lift, 1, true, false, true);
  case ZYDIS_MNEMONIC_CMPSW: return string(lift, 2, true, false, true);
  case ZYDIS_MNEMONIC_CMPSD: return is_string && string(lift, 4, true, false, true);
  case ZYDIS_MNEMONIC_CMPSQ: return string(lift, 8, true, false, true);
  case ZYDIS_MNEMONIC_CLC: return flag(lift, ASSAY_UOP_and, kFlagsRegister, ~1LL);
  case ZYDIS_MNEMONIC_STC: return flag(lift, ASSAY_UOP_or, kFlagsRegister, 1);
  case ZYDIS_MNEMONIC_CMC: return flag(lift, ASSAY_UOP_xor, kFlagsRegister, 1);
  case ZYDIS_MNEMONIC_CLD: return flag(lift, ASSAY_UOP_and, ASSAY_REG_CONTROL, ~0x400LL);
  case ZYDIS_MNEMONIC_STD: return flag(lift, ASSAY_UOP_or, ASSAY_REG_CONTROL, 0x400);
  case ZYDIS_MNEMONIC_LAHF: {
    Reg low = lift.make(ASSAY_UOP_and, 8, value(kFlagsRegister), Operand::of(0xd5));
    lift.emit(ASSAY_UOP_or, 8, low, value(low), Operand::of(2));
    lift.emit(ASSAY_UOP_put8h, 8, ASSAY_REG_RAX, value(ASSAY_REG_RAX), value(low));
    return true;
  }
  case ZYDIS_MNEMONIC_SAHF: {
    Reg high = lift.make(ASSAY_UOP_shr, 8, value(ASSAY_REG_RAX), Operand::of(8));
    lift.emit(ASSAY_UOP_and, 8, high, value(high), Operand::of(0xd5));
    Reg kept = lift.make(ASSAY_UOP_and, 8, value(kFlagsRegister), Operand::of(0x800));
    lift.emit(ASSAY_UOP_or, 8, kFlagsRegister, value(kept), value(high));
    return true;
  }
  case ZYDIS_MNEMONIC_PUSHFQ: return push_flags(lift);
  case ZYDIS_MNEMONIC_POPFQ: return pop_flags(lift);
  case ZYDIS_MNEMONIC_XTEST: // outside a transaction
    lift.emit(ASSAY_UOP_copy, 8, kFlagsRegister, Operand::of(0x40));
    return true;
  case ZYDIS_MNEMONIC_UD0:
  case ZYDIS_MNEMONIC_UD1:
  case ZYDIS_MNEMONIC_UD2:
  case ZYDIS_MNEMONIC_HLT:
  case ZYDIS_MNEMONIC_INT3: lift.instruction.flow = Flow::stop; return true; // no value is left
  default: return false;
  }
}

} // namespace binary
