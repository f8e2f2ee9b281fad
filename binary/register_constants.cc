#include "binary/register_constants.h"

#include "abi/uop_step.h"
#include "binary/effects.h"

namespace binary {

void execute(const Code &code, const Instruction &instruction, Constants &constants) {
  for (const assay_uop &uop : code.uops_of(instruction)) {
    if (uop.op == ASSAY_UOP_store || uop.op == ASSAY_UOP_store_if || uop.dst >= constants.size())
      continue;
    Constant made{Constant::varies, 0};
    auto offset = static_cast<uint64_t>(int64_t{uop.i});
    if (uop.op == ASSAY_UOP_lea && uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO &&
        uop.width == 8)
      made = {Constant::address, offset};
    else if (uop.op == ASSAY_UOP_copy && uop.width == 8 && uop.a < constants.size())
      made = constants[uop.a];
    else if (uop.op == ASSAY_UOP_or && uop.a == ASSAY_REG_ZERO && has_immediate(uop))
      made = {Constant::known, static_cast<uint64_t>(uop.imm) & uop_mask(uop.width)};
    constants[uop.dst] = made;
  }
  VariableSet written = code.touched_by(instruction).writes;
  if (instruction.is_call())
    written = ~VariableSet{instruction.kept};
  for (unsigned reg = 0; reg < constants.size(); reg++)
    if (written & bit(reg))
      constants[reg] = {Constant::varies, 0};
}

} // namespace binary
