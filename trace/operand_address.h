// Code that computes the address of an access as its instruction would, from the operand; of
// routine_mover.cc alone. It shares nothing with groups.cc, which follows registers through
// micro-ops: so the two can be compared.
#pragma once

#include "trace/module_code.h"

namespace trace {

// Appends a lea into `to` of access number `access` of the code, one of the instruction's, as
// registers are when the instruction begins. The base of a segment is left out.
void emit_address(ModuleCode &module, const binary::Code &code,
                  const binary::Instruction &instruction, uint32_t access, Gpr to);

} // namespace trace
