// See the header.

#include "binary/effects.h"

namespace binary {

static constexpr VariableSet kAll = bit(kVariables) - 1;

VariableSet left_by_call(const Instruction &call) {
  return (kAll & ~kKeptByCalls & ~VariableSet{call.kept}) | (call.moves_fs ? bit(kFs) : 0);
}

Effects effects_of(const Code &code, const Instruction &instruction) {
  Effects effects;
  auto read = [&](unsigned reg) {
    if (!is_register(reg))
      return;
    if (unsigned variable = variable_of(reg); variable < kVariables)
      effects.reads |= bit(variable) & ~effects.writes;
  };
  for (const assay_uop &uop : code.uops_of(instruction)) {
    read(uop.a);
    read(uop.b);
    if (uses_c(uop))
      read(uop.c);
    if (assay_uop_reads_modes(uop.op)) {
      read(ASSAY_REG_MXCSR);
      read(ASSAY_REG_X87_CONTROL);
    }
    if (writes_memory(uop)) {
      read(uop.dst);
      effects.reads |= bit(kMemory) & ~effects.writes;
      effects.writes |= bit(kMemory);
    } else if (has_result(uop)) {
      if (reads_memory(uop))
        effects.reads |= bit(kMemory) & ~effects.writes;
      if (unsigned variable = variable_of(uop.dst); variable < kVariables) {
        if (variable >= kVectors && variable < kMemory)
          effects.reads |= bit(variable) & ~effects.writes; // the other lanes stay
        effects.writes |= bit(variable);
      }
    }
  }
  if (instruction.opaque) {
    const Touched touched = code.touched_by(instruction);
    effects.reads |= touched.reads & ~effects.writes;
    effects.writes |= touched.writes;
  }
  if (instruction.is_call())
    effects.writes |= left_by_call(instruction);
  return effects;
}

} // namespace binary
