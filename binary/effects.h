// What micro-ops and instructions read and write, as sets of variables.
#pragma once

#include <algorithm>
#include <span>

#include "binary/code.h"

namespace binary {

inline bool writes_memory(const assay_uop &uop) {
  return uop.op == ASSAY_UOP_store || uop.op == ASSAY_UOP_store_if;
}
inline bool reads_memory(const assay_uop &uop) {
  return uop.op == ASSAY_UOP_load || uop.op == ASSAY_UOP_load_if;
}
inline bool has_result(const assay_uop &uop) {
  return !writes_memory(uop) && uop.op != ASSAY_UOP_jump && uop.op != ASSAY_UOP_branch &&
         uop.op != ASSAY_UOP_opaque;
}
// Whether an operand is a register that has a value of its own.
inline bool is_register(unsigned reg) {
  return reg != ASSAY_UOP_IMMEDIATE && reg != ASSAY_REG_ZERO && reg != ASSAY_REG_BIAS;
}
inline bool has_immediate(const assay_uop &uop) {
  return uop.b == ASSAY_UOP_IMMEDIATE; // and no c then
}
inline bool uses_c(const assay_uop &uop) {
  return !has_immediate(uop) && uop.c != ASSAY_REG_ZERO;
}

inline bool writes_flags(std::span<const assay_uop> uops) {
  return std::ranges::any_of(
      uops, [](const assay_uop &uop) { return has_result(uop) && uop.dst == ASSAY_REG_FLAGS; });
}

// Whether other code may run before the next instruction, or none after it: a system call, or what
// else writes memory that cannot be listed.
inline bool may_leave(const Code &code, const Instruction &instruction) {
  return instruction.opaque && code.accesses_of(instruction).empty() &&
         code.touched_by(instruction).writes & bit(kMemory);
}

// What a call leaves anew.
VariableSet left_by_call(const Instruction &call);

// The variables that an instruction reads before it writes them, and those that it writes, in whole or in
// part: of a vector of which only lanes are written, the others are read. What a callee reads is
// not among them.
struct Effects {
  VariableSet reads = 0, writes = 0;
};
Effects effects_of(const Code &code, const Instruction &instruction);

} // namespace binary
