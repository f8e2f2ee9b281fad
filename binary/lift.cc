// Building micro-ops: the parts that all families of instructions use.
//
// A general register is read in place, whatever its width, because a micro-op reads only the low
// bytes that its own width says; only ah … bh need a shift. A result of 32 or 64 bits is computed in
// place too, because micro-ops zero-extend as the processor does; 8 and 16 bits go through a temporary
// and `put`.

#include "binary/lift.h"

#include <algorithm>
#include <climits>
#include <iterator>

namespace binary {

Reg register_of(ZydisRegister reg) {
  auto id = [reg] { return static_cast<Reg>(ZydisRegisterGetId(reg)); };
  switch (ZydisRegisterGetClass(reg)) {
  case ZYDIS_REGCLASS_GPR8:
    // al … bl, ah … bh, spl … dil, r8b …
    if (reg >= ZYDIS_REGISTER_AH)
      return static_cast<Reg>(reg <= ZYDIS_REGISTER_BH ? reg - ZYDIS_REGISTER_AH
                                                       : reg - ZYDIS_REGISTER_SPL + 4);
    return static_cast<Reg>(reg - ZYDIS_REGISTER_AL);
  case ZYDIS_REGCLASS_GPR16:
  case ZYDIS_REGCLASS_GPR32:
  case ZYDIS_REGCLASS_GPR64: return id();
  case ZYDIS_REGCLASS_XMM:
  case ZYDIS_REGCLASS_YMM:
  case ZYDIS_REGCLASS_ZMM: return static_cast<Reg>(ASSAY_REG_LANES + 8 * id());
  case ZYDIS_REGCLASS_MASK: return static_cast<Reg>(ASSAY_REG_MASKS + id());
  case ZYDIS_REGCLASS_MMX:
  case ZYDIS_REGCLASS_X87: return static_cast<Reg>(ASSAY_REG_X87 + 2 * id());
  case ZYDIS_REGCLASS_FLAGS: return ASSAY_REG_FLAGS;
  default:
    if (reg == ZYDIS_REGISTER_FS)
      return ASSAY_REG_FS;
    return reg == ZYDIS_REGISTER_GS ? ASSAY_REG_GS : ASSAY_REG_COUNT;
  }
}

bool is_high_byte(ZydisRegister reg) {
  return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

std::optional<assay_uop_code> condition_among(const ZydisMnemonic (&all)[16], ZydisMnemonic one) {
  auto found = std::find(std::begin(all), std::end(all), one);
  if (found == std::end(all))
    return std::nullopt;
  return static_cast<assay_uop_code>(ASSAY_UOP_if_o + (found - all));
}

Lift::Lift(const ZydisDecodedInstruction &decoded_instruction, const ZydisDecodedOperand *all,
           Instruction &made, Code &code)
    : decoded(decoded_instruction), instruction(made), hidden(all), code_(code) {
  for (unsigned i = 0; i < decoded.operand_count_visible && operand_count < 8; i++) {
    if (all[i].encoding == ZYDIS_OPERAND_ENCODING_MASK) {
      Reg k = register_of(all[i].reg.value);
      mask = k == ASSAY_REG_MASKS ? Reg{0} : k;
    } else {
      operands[operand_count++] = &all[i];
    }
  }
  zeroing = decoded.avx.mask.mode == ZYDIS_MASK_MODE_ZEROING ||
            decoded.avx.mask.mode == ZYDIS_MASK_MODE_CONTROL_ZEROING;
}

Reg Lift::temporary() {
  // Those of an instruction that needs more are used again; no family needs as many at once.
  return static_cast<Reg>(ASSAY_REG_TEMPORARIES + temporaries_++ % ASSAY_UOP_TEMPORARIES);
}

void Lift::emit(assay_uop_code op, unsigned width, Reg dst, Operand a, Operand b) {
  assay_uop uop{};
  uop.op = static_cast<uint8_t>(op);
  uop.width = static_cast<uint8_t>(width);
  uop.dst = dst;
  if (op == ASSAY_UOP_copy && a.is_constant()) { // only b may be constant: 0 | constant
    uop.op = ASSAY_UOP_or;
    b = a;
    a = {};
  }
  uop.a = in_register(a);
  uop.b = b.reg;
  if (b.is_constant())
    uop.imm = b.constant;
  else
    uop.c = ASSAY_REG_ZERO;
  code_.uops.push_back(uop);
}

void Lift::emit3(assay_uop_code op, unsigned width, Reg dst, Reg a, Reg b, Reg c, int32_t i,
                 uint8_t shift) {
  assay_uop uop{};
  uop.op = static_cast<uint8_t>(op);
  uop.width = static_cast<uint8_t>(width);
  uop.dst = dst;
  uop.a = a;
  uop.b = b;
  uop.c = c;
  uop.shift = shift;
  uop.i = i;
  code_.uops.push_back(uop);
}

Reg Lift::make(assay_uop_code op, unsigned width, Operand a, Operand b) {
  Reg result = temporary();
  emit(op, width, result, a, b);
  return result;
}

Reg Lift::make3(assay_uop_code op, unsigned width, Reg a, Reg b, Reg c, int32_t i) {
  Reg result = temporary();
  emit3(op, width, result, a, b, c, i);
  return result;
}

Reg Lift::in_register(Operand value) {
  if (!value.is_constant())
    return value.reg;
  if (value.constant == 0)
    return ASSAY_REG_ZERO;
  Reg result = temporary();
  emit(ASSAY_UOP_copy, 8, result, value);
  return result;
}

Address Lift::code_address(uint64_t linked) {
  auto offset = static_cast<int64_t>(linked);
  Address address;
  address.base = ASSAY_REG_BIAS;
  if (offset >= INT32_MIN && offset <= INT32_MAX)
    address.offset = static_cast<int32_t>(offset);
  else
    address.index = in_register(Operand::of(offset));
  return address;
}

Address Lift::address_of(const ZydisDecodedOperand &memory) {
  const auto &mem = memory.mem;
  int64_t displacement = mem.disp.has_displacement ? mem.disp.value : 0;
  Address address;
  if (mem.base == ZYDIS_REGISTER_RIP || mem.base == ZYDIS_REGISTER_EIP) {
    address = code_address(instruction.end() + static_cast<uint64_t>(displacement));
  } else {
    if (mem.base != ZYDIS_REGISTER_NONE)
      address.base = register_of(mem.base);
    if (mem.index != ZYDIS_REGISTER_NONE && mem.type != ZYDIS_MEMOP_TYPE_VSIB) {
      address.index = register_of(mem.index);
      address.shift = static_cast<uint8_t>(mem.scale == 8   ? 3
                                           : mem.scale == 4 ? 2
                                           : mem.scale == 2 ? 1
                                                            : 0);
    }
    if (displacement >= INT32_MIN && displacement <= INT32_MAX) {
      address.offset = static_cast<int32_t>(displacement);
    } else { // moffs64
      address.base = in_register(Operand::of(displacement));
    }
  }
  if (decoded.address_width == 32) {
    Reg cut = temporary();
    lea(cut, 4, address);
    address = Address{};
    address.base = cut;
  }
  if (mem.segment == ZYDIS_REGISTER_FS || mem.segment == ZYDIS_REGISTER_GS)
    address.segment = register_of(mem.segment);
  return address;
}

Address Lift::address_again(const ZydisDecodedOperand &memory) {
  return remembered_ == &memory ? remembered_address_ : address_of(memory);
}

void Lift::access(unsigned size, bool write) {
  code_.accesses.push_back(
      {static_cast<uint32_t>(code_.uops.size()), static_cast<uint16_t>(size), write});
}

void Lift::access_masked(unsigned size, bool write) {
  access(size, write);
  code_.accesses.back().masked = true;
}

void Lift::access_many(unsigned size, bool write) {
  code_.accesses.push_back({Access::kNoAddress, static_cast<uint16_t>(size), write});
}

void Lift::load(Reg dst, unsigned width, const Address &address) {
  emit3(ASSAY_UOP_load, width, dst, address.base, address.index, address.segment, address.offset,
        address.shift);
}

void Lift::store(Reg value, unsigned width, const Address &address) {
  emit3(ASSAY_UOP_store, width, value, address.base, address.index, address.segment, address.offset,
        address.shift);
}

void Lift::lea(Reg dst, unsigned width, const Address &address) {
  emit3(ASSAY_UOP_lea, width, dst, address.base, address.index, address.segment, address.offset,
        address.shift);
}

Operand Lift::read(unsigned index) {
  const ZydisDecodedOperand &from = operand(index);
  switch (from.type) {
  case ZYDIS_OPERAND_TYPE_IMMEDIATE: return Operand::of(static_cast<int64_t>(from.imm.value.u));
  case ZYDIS_OPERAND_TYPE_MEMORY: {
    unsigned width = from.size / 8;
    remembered_address_ = address_of(from);
    remembered_ = &from;
    access(width, false);
    Reg result = temporary();
    load(result, width, remembered_address_);
    return value(result);
  }
  default:
    if (is_high_byte(from.reg.value))
      return value(make(ASSAY_UOP_shr, 2, value(register_of(from.reg.value)), Operand::of(8)));
    return value(register_of(from.reg.value));
  }
}

Reg Lift::destination(unsigned index) {
  const ZydisDecodedOperand &to = operand(index);
  return to.type == ZYDIS_OPERAND_TYPE_REGISTER && to.size >= 32 ? register_of(to.reg.value)
                                                                 : temporary();
}

void Lift::finish(unsigned index, Reg result) {
  const ZydisDecodedOperand &to = operand(index);
  if (to.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    Address address = address_again(to);
    access(to.size / 8, true);
    store(result, to.size / 8, address);
    return;
  }
  Reg reg = register_of(to.reg.value);
  if (to.size >= 32) {
    if (result != reg)
      emit(ASSAY_UOP_copy, to.size / 8, reg, value(result));
  } else {
    emit(to.size == 16                ? ASSAY_UOP_put16
         : is_high_byte(to.reg.value) ? ASSAY_UOP_put8h
                                      : ASSAY_UOP_put8,
         8, reg, value(reg), value(result));
  }
}

void Lift::write(unsigned index, Operand from) {
  if (!is_memory(index) && operand(index).size >= 32)
    emit(ASSAY_UOP_copy, bytes(index), destination(index), from);
  else
    finish(index, in_register(from));
}

void Lift::jump(const Address &target) {
  Reg to = target.base;
  int32_t offset = target.offset;
  if (target.index != ASSAY_REG_ZERO || target.segment != ASSAY_REG_ZERO) {
    to = temporary();
    lea(to, 8, target);
    offset = 0;
  }
  emit3(ASSAY_UOP_jump, 8, ASSAY_REG_ZERO, to, ASSAY_REG_ZERO, ASSAY_REG_ZERO, offset);
}

void Lift::branch(Reg condition, uint64_t target) {
  Address to = code_address(target);
  if (to.index != ASSAY_REG_ZERO) {
    Reg whole = temporary();
    lea(whole, 8, to);
    to = Address{};
    to.base = whole;
  }
  emit3(ASSAY_UOP_branch, 8, ASSAY_REG_ZERO, to.base, condition, ASSAY_REG_ZERO, to.offset);
}

} // namespace binary
