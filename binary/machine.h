// Executing micro-ops: the reference that tests hold against the processor.
#pragma once

#include "binary/code.h"

#include <array>
#include <cstdint>

namespace binary {

// The memory that micro-ops read and write; width is 1, 2, 4 or 8 bytes.
class Memory {
public:
  virtual ~Memory() = default;
  // False if there is no such memory.
  virtual bool load(uint64_t address, unsigned width, uint64_t &value) = 0;
  virtual bool store(uint64_t address, unsigned width, uint64_t value) = 0;
};

struct Machine {
  // Zeros, and floating point as programs begin.
  Machine() {
    registers[ASSAY_REG_MXCSR] = ASSAY_MXCSR_AT_START;
    registers[ASSAY_REG_X87_CONTROL] = ASSAY_X87_CONTROL_AT_START;
  }
  std::array<uint64_t, ASSAY_REG_COUNT> registers{}; // by enum assay_uop_register
  uint64_t pc = 0;
};

enum class Step {
  done,
  opaque, // what the instruction writes is unknown; nothing of it was changed
  fault,  // memory was refused; the registers are as far as the instruction came
};

// Is told what each micro-op does; `uop` is its index in Code::uops.
class Observer {
public:
  virtual ~Observer() = default;
  virtual void made(uint32_t uop, uint64_t value) = 0;
  virtual void accessed(uint32_t uop, uint64_t address) = 0; // before it is
  virtual void branched(uint32_t uop, bool taken) = 0;
};

// Executes one instruction and leaves its successor in pc. Addresses of the code itself are linked
// ones plus the register `bias`, pc too.
Step execute(const Code &code, const Instruction &instruction, Machine &machine, Memory &memory,
             Observer *observer = nullptr);

} // namespace binary
