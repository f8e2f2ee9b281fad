// Micro-ops are executed here, in the kernel's program and in the handler of a process. If each had
// its own switch, the three would drift apart. So abi/uop_run.h has what micro-ops do, once; who
// includes it says by macros what registers and memory are. Here registers are an array, memory is
// asked through Memory, and an observer is told of each step.
//
// Floating point goes the fast way as long as MXCSR and the control word of x87 are as programs
// begin; only otherwise the processor's modes are changed for each operation that reads them.

#include "binary/machine.h"

#include "abi/uop_step.h"
#include "binary/effects.h"

namespace binary {
namespace {

// One instruction being executed.
struct Execution {
  std::array<uint64_t, ASSAY_REG_COUNT> &registers;
  Memory &memory;
  Observer *observer;
  uint32_t index; // of the micro-op in Code::uops

  bool load(uint64_t address, unsigned width, unsigned reg) const {
    if (observer)
      observer->accessed(index, address);
    return memory.load(address, width, registers[reg]);
  }
  bool store(uint64_t address, unsigned width, unsigned reg) const {
    if (observer)
      observer->accessed(index, address);
    return memory.store(address, width, registers[reg]);
  }
  uint64_t value_of(const assay_uop &uop, uint64_t a, uint64_t b, uint64_t c) const {
    uint64_t mxcsr = registers[ASSAY_REG_MXCSR], x87 = registers[ASSAY_REG_X87_CONTROL];
    if (assay_uop_reads_modes(uop.op) &&
        (mxcsr != ASSAY_MXCSR_AT_START || x87 != ASSAY_X87_CONTROL_AT_START))
      return assay_uop_value_in(mxcsr, x87, &uop, a, b, c);
    return assay_uop_value(&uop, a, b, c);
  }
  void x87(const assay_uop &uop) const {
    if (uop.op == ASSAY_UOP_x87_turn)
      assay_uop_x87_turn(registers.data(),
                         registers[uop.a] + static_cast<uint64_t>(int64_t{uop.i}));
    else
      assay_uop_x87(&uop, registers.data());
  }
};

} // namespace
} // namespace binary

#define ASSAY_RUN_STATE const binary::Execution
#define ASSAY_RUN_GET(run, reg) (run)->registers[reg]
#define ASSAY_RUN_SET(run, reg, value) (run)->registers[reg] = (value)
#define ASSAY_RUN_LOAD(run, address, width, reg) (run)->load(address, width, reg)
#define ASSAY_RUN_STORE(run, address, width, reg) (run)->store(address, width, reg)
#define ASSAY_RUN_VALUE(run, uop, a, b, c) (run)->value_of(*(uop), a, b, c)
#define ASSAY_RUN_X87(run, uop) (run)->x87(*(uop))
#include "abi/uop_run.h"

namespace binary {

Step execute(const Code &code, const Instruction &instruction, Machine &machine, Memory &memory,
             Observer *observer) {
  const uint64_t next = instruction.end() + machine.registers[ASSAY_REG_BIAS];
  Execution run{machine.registers, memory, observer, instruction.uop};
  for (const assay_uop &uop : code.uops_of(instruction)) {
    uint64_t condition = uop.op == ASSAY_UOP_branch ? machine.registers[uop.b] : 0;
    if (observer && uop.op == ASSAY_UOP_branch)
      observer->branched(run.index, condition != 0);
    switch (assay_run_uop(&run, &uop, &machine.pc)) {
    case ASSAY_RUN_JUMP: return Step::done;
    case ASSAY_RUN_FAULT: return Step::fault;
    case ASSAY_RUN_OPAQUE:
    case ASSAY_RUN_UNKNOWN: return Step::opaque;
    case ASSAY_RUN_NEXT: break;
    }
    if (observer && has_result(uop))
      observer->made(run.index, machine.registers[uop.dst]);
    run.index++;
  }
  machine.pc = next;
  return Step::done;
}

} // namespace binary
