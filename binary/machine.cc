// See the header. One switch for effects; values come from abi/uop_step.h.

#include "binary/machine.h"

#include "abi/uop_step.h"

#include <algorithm>

namespace binary {
Step execute(const Code &code, const Instruction &instruction, Machine &machine, Memory &memory,
             Observer *observer) {
  auto &registers = machine.registers;
  uint64_t next = instruction.end() + registers[ASSAY_REG_BIAS];
  uint32_t index = instruction.uop;
  for (const assay_uop &uop : code.uops_of(instruction)) {
    bool constant = uop.b == ASSAY_UOP_IMMEDIATE, has_result = true;
    uint64_t a = registers[uop.a];
    uint64_t b = constant ? static_cast<uint64_t>(uop.imm) : registers[uop.b];
    auto offset = static_cast<uint64_t>(int64_t{uop.i});
    uint64_t address = a + (b << uop.shift) + (constant ? 0 : registers[uop.c]) + offset;
    if (uop.op == ASSAY_UOP_load_if || uop.op == ASSAY_UOP_store_if)
      address = a + offset;
    if (observer && (uop.op == ASSAY_UOP_load || uop.op == ASSAY_UOP_store ||
                     uop.op == ASSAY_UOP_load_if || uop.op == ASSAY_UOP_store_if))
      observer->accessed(index, address);
    switch (uop.op) {
    case ASSAY_UOP_load:
      if (!memory.load(address, uop.width, registers[uop.dst]))
        return Step::fault;
      break;
    case ASSAY_UOP_store:
      has_result = false;
      if (!memory.store(address, uop.width, registers[uop.dst]))
        return Step::fault;
      break;
    case ASSAY_UOP_load_if:
      if (!b)
        registers[uop.dst] = 0;
      else if (!memory.load(address, uop.width, registers[uop.dst]))
        return Step::fault;
      break;
    case ASSAY_UOP_store_if:
      has_result = false;
      if (b && !memory.store(address, uop.width, registers[uop.dst]))
        return Step::fault;
      break;
    case ASSAY_UOP_jump: machine.pc = a + offset; return Step::done;
    case ASSAY_UOP_branch:
      has_result = false;
      if (observer)
        observer->branched(index, b != 0);
      if (b) {
        machine.pc = a + offset;
        return Step::done;
      }
      break;
    case ASSAY_UOP_opaque: return Step::opaque;
    case ASSAY_UOP_lane_clear: {
      auto lane = registers.begin() + uop.dst;
      std::fill(lane, lane + (8 - (uop.dst - ASSAY_REG_LANES) % 8), 0);
      break;
    }
    case ASSAY_UOP_x87_turn: assay_uop_x87_turn(registers.data(), a + offset); break;
#define ASSAY_UOP(name, operands, expression, meaning)
#define ASSAY_UOP_X87(name, operands, expression, meaning) case ASSAY_UOP_##name:
#include "abi/uops.def"
    case ASSAY_UOP_x87_flags: assay_uop_x87(&uop, registers.data()); break;
    default:
      if (assay_uop_reads_modes(uop.op) &&
          (registers[ASSAY_REG_MXCSR] != ASSAY_MXCSR_AT_START ||
           registers[ASSAY_REG_X87_CONTROL] != ASSAY_X87_CONTROL_AT_START))
        registers[uop.dst] =
            assay_uop_value_in(registers[ASSAY_REG_MXCSR], registers[ASSAY_REG_X87_CONTROL], &uop,
                               a, b, constant ? 0 : registers[uop.c]);
      else
        registers[uop.dst] = assay_uop_value(&uop, a, b, constant ? 0 : registers[uop.c]);
    }
    if (observer && has_result)
      observer->made(index, registers[uop.dst]);
    index++;
  }
  machine.pc = next;
  return Step::done;
}

} // namespace binary
