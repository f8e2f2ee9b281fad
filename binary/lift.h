// What lifting one instruction needs; of the decoder alone.
//
// `Lift` holds the decoded instruction and appends micro-ops. Families of instructions are lifted in
// their own files; each function says whether it knows the instruction. What was appended by one that
// then gave up is taken back.
#pragma once

#include "binary/code.h"

#include <Zydis/Zydis.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace binary {

using Reg = uint16_t; // enum assay_uop_register

// An operand of a micro-op: a register or a constant.
struct Operand {
  Reg reg = ASSAY_REG_ZERO;
  int64_t constant = 0; // if reg is ASSAY_UOP_IMMEDIATE

  template <class Integer> static Operand of(Integer constant) {
    return {ASSAY_UOP_IMMEDIATE, static_cast<int64_t>(constant)};
  }
  bool is_constant() const { return reg == ASSAY_UOP_IMMEDIATE; }
};
inline Operand value(Reg reg) {
  return {reg, 0};
}

// base + (index << shift) + segment + offset
struct Address {
  Reg base = ASSAY_REG_ZERO, index = ASSAY_REG_ZERO, segment = ASSAY_REG_ZERO;
  uint8_t shift = 0;
  int32_t offset = 0;
};

class Lift {
public:
  Lift(const ZydisDecodedInstruction &decoded, const ZydisDecodedOperand *all,
       Instruction &instruction, Code &code);

  const ZydisDecodedInstruction &decoded;
  Instruction &instruction;
  // The explicit operands without the mask of EVEX.
  const ZydisDecodedOperand *operands[8] = {};
  unsigned operand_count = 0;
  const ZydisDecodedOperand *hidden = nullptr; // all operands, hidden ones as well
  Reg mask = 0;                                // k1 … k7, or 0
  bool zeroing = false;

  const ZydisDecodedOperand &operand(unsigned index) const { return *operands[index]; }
  bool is_register(unsigned index) const {
    return operand(index).type == ZYDIS_OPERAND_TYPE_REGISTER;
  }
  bool is_memory(unsigned index) const { return operand(index).type == ZYDIS_OPERAND_TYPE_MEMORY; }
  bool is_constant(unsigned index) const {
    return operand(index).type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  }
  uint64_t constant(unsigned index) const { return operand(index).imm.value.u; }
  unsigned bytes(unsigned index) const { return operand(index).size / 8; }

  // Micro-ops.
  Reg temporary();
  // Those made since mark() may be used again.
  unsigned mark_temporaries() const { return temporaries_; }
  void release_temporaries(unsigned mark) { temporaries_ = mark; }
  void emit(assay_uop_code op, unsigned width, Reg dst, Operand a, Operand b = {});
  // With a third operand, a small constant, a shift.
  void emit3(assay_uop_code op, unsigned width, Reg dst, Reg a, Reg b, Reg c, int32_t i = 0,
             uint8_t shift = 0);
  Reg make(assay_uop_code op, unsigned width, Operand a, Operand b = {}); // into a new temporary
  Reg make3(assay_uop_code op, unsigned width, Reg a, Reg b, Reg c, int32_t i = 0);
  Reg in_register(Operand value); // as an operand that must be a register

  // Memory. Each access() belongs to the next micro-op, which has the address.
  Address address_of(const ZydisDecodedOperand &memory);
  Address code_address(uint64_t linked);
  void access(unsigned size, bool write);
  void access_masked(unsigned size, bool write);
  void access_many(unsigned size, bool write); // without an address
  void load(Reg dst, unsigned width, const Address &address);
  void store(Reg value, unsigned width, const Address &address);
  void lea(Reg dst, unsigned width, const Address &address);

  // General registers and memory operands.
  Operand read(unsigned index);
  Reg read_register(unsigned index) { return in_register(read(index)); }
  // Where a result of this operand's width may be computed, and what makes it the operand's.
  Reg destination(unsigned index);
  void finish(unsigned index, Reg result);
  void write(unsigned index, Operand value); // both, by a copy

  void jump(const Address &target);
  void branch(Reg condition, uint64_t target);

private:
  Code &code_;
  unsigned temporaries_ = 0;
  const ZydisDecodedOperand *remembered_ = nullptr; // an operand in memory that was read …
  Address remembered_address_;                      // … and is written again
  Address address_again(const ZydisDecodedOperand &memory);
};

// The register of micro-ops of a Zydis register that is a whole variable or its low part; ASSAY_REG_COUNT
// for others. Vector registers yield their lane 0, mm and st their significand.
Reg register_of(ZydisRegister reg);
bool is_high_byte(ZydisRegister reg);

// The condition of an instruction that is one of 16, which stand in the order of their encoding.
std::optional<assay_uop_code> condition_among(const ZydisMnemonic (&all)[16], ZydisMnemonic one);

// Each: whether it lifted the instruction.
bool lift_integer(Lift &lift);
bool lift_bits(Lift &lift);     // shifts, bit tests, bit counts
bool lift_control(Lift &lift);  // jumps, calls, strings, flags
bool lift_moves(Lift &lift);    // vectors that are moved, whole or in part
bool lift_shuffles(Lift &lift); // vectors that are rearranged
bool lift_vector(Lift &lift);   // integers in vectors
bool lift_float(Lift &lift);
bool lift_masks(Lift &lift);        // k registers, comparisons into them
bool lift_permutations(Lift &lift); // vectors that are rearranged or counted as other vectors say
bool lift_gathers(Lift &lift);      // gathers and scatters
bool lift_aes(Lift &lift);
bool lift_x87(Lift &lift); // only what is_x87()
bool lift_mmx(Lift &lift); // only what touches_mmx()

// Turns the stack of x87 so that st(i) has the number i, as MMX wants it.
void turn_to_bottom(Lift &lift);
// Of lift_vector() what makes each lane of the same lane of its sources.
bool lift_single_lanes(Lift &lift);

bool is_x87(const ZydisDecodedInstruction &decoded);
bool touches_mmx(const Lift &lift);

} // namespace binary
