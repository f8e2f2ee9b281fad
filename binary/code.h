// Machine code as micro-ops: what the decoder makes of bytes, and all later layers read.
#pragma once

#include "abi/uop.h"

#include <cstdint>
#include <span>
#include <vector>

namespace binary {

// How control leaves an instruction.
enum class Flow : uint8_t {
  next,          // to the one behind it, and nowhere else
  jump,          // to `target`
  branch,        // to `target` or the next
  indirect_jump, // to what a register or memory says
  call,          // to `target`, and back to the next
  indirect_call,
  ret,
  stop, // nowhere that is known: ud2, hlt, far jumps
};

// One read or write of memory by an instruction. Its address is a + (b << shift) + c + i of micro-op
// `uop`, whose own width may be less than `size`: a vector is moved lane by lane.
struct Access {
  static constexpr uint32_t kNoAddress = UINT32_MAX;
  uint32_t uop =
      0; // index in Code::uops; kNoAddress: many places, of a gather or scatter that is opaque
  uint16_t size = 0; // bytes; 0: as many as the state of the processor that is saved or restored
  bool write = false;
  bool masked = false; // made if an element of a mask says so

  bool has_address() const { return uop != kNoAddress; }
};

// The things that instructions read and write, as single static assignment sees them: a general
// register, the flags, a vector register as a whole, all memory. A set of them is one word.
enum Variable : uint8_t {
  kFlags = 16,
  kControl,
  kFs,
  kGs,
  kMxcsr, // its control bits
  kMasks, // k0 … k7
  kVectors = kMasks + 8,
  kX87 = kVectors + 32, // its registers, which are those of MMX, and how it rounds
  kMemory,
  kVariables,
};
using VariableSet = uint64_t;
constexpr VariableSet bit(unsigned variable) {
  return VariableSet{1} << variable;
}

// Sets of general registers, a bit each.
using RegisterSet = uint16_t;
constexpr RegisterSet register_bit(unsigned reg) {
  return static_cast<RegisterSet>(1u << reg);
}
// Those that functions keep for their callers by the System V ABI.
constexpr RegisterSet kKeptByFunctions =
    static_cast<RegisterSet>(bit(ASSAY_REG_RBX) | bit(ASSAY_REG_RSP) | bit(ASSAY_REG_RBP) |
                             bit(12) | bit(13) | bit(14) | bit(15));
// What else a call keeps; it leaves everything but these and its kept registers anew.
constexpr VariableSet kKeptByCalls = bit(kControl) | bit(kFs) | bit(kGs) | bit(kMxcsr);

// The variable that a register of micro-ops belongs to; kVariables for temporaries and constants.
constexpr unsigned variable_of(unsigned reg) {
  if (reg <= ASSAY_REG_GS)
    return reg;
  if (reg == ASSAY_REG_MXCSR)
    return kMxcsr;
  if (reg == ASSAY_REG_X87_CONTROL || (reg >= ASSAY_REG_X87 && reg < ASSAY_REG_COUNT))
    return kX87;
  if (reg >= ASSAY_REG_LANES)
    return reg < ASSAY_REG_COUNT ? kVectors + (reg - ASSAY_REG_LANES) / 8 : unsigned{kVariables};
  return reg >= ASSAY_REG_MASKS && reg < ASSAY_REG_MASKS + 8 ? kMasks + reg - ASSAY_REG_MASKS
                                                             : unsigned{kVariables};
}

struct Instruction {
  uint64_t address = 0; // as linked
  uint32_t uop = 0;     // its micro-ops: Code::uops[uop], …
  uint32_t access = 0;  // its accesses: Code::accesses[access], …
  uint32_t operand = 0; // see target() and Code::touched_by()
  uint16_t uops = 0;
  uint16_t mnemonic = 0;        // ZydisMnemonic
  uint16_t undefined_flags = 0; // bits of RFLAGS that are undefined after it
  uint8_t accesses = 0;
  uint8_t length = 0; // bytes
  Flow flow = Flow::next;
  // Ends in the micro-op `opaque`: Code::touched_by() says what it reads and writes.
  bool opaque : 1 = false;
  bool repeats : 1 = false; // a string instruction that goes on at itself
  // It may go elsewhere, or access other bytes, than is said here: WhyNot::half_known.
  bool half_known : 1 = false;
  // The system call that sets the base of fs, as the start of a program makes it, or a call of what makes it.
  bool moves_fs : 1 = false;
  // Of a call: the general registers that are afterwards what they were.
  RegisterSet kept = kKeptByFunctions;

  uint64_t end() const { return address + length; }
  // Of a direct jump, branch or call; 0 of others.
  uint64_t target() const {
    const bool is_direct = flow == Flow::jump || flow == Flow::branch || flow == Flow::call;
    return is_direct ? end() + static_cast<uint64_t>(int64_t{static_cast<int32_t>(operand)}) : 0;
  }
  bool is_call() const { return flow == Flow::call || flow == Flow::indirect_call; }
};

static_assert(sizeof(Instruction) == 32); // more than anything else that is kept of a routine

// What an opaque instruction reads and writes.
struct Touched {
  VariableSet reads = 0, writes = 0;
};

struct Code {
  std::vector<Instruction> instructions;
  std::vector<assay_uop> uops;
  std::vector<Access> accesses;
  std::vector<Touched> touched; // by opaque ones

  std::span<const assay_uop> uops_of(const Instruction &instruction) const {
    return {uops.data() + instruction.uop, instruction.uops};
  }
  std::span<const Access> accesses_of(const Instruction &instruction) const {
    return {accesses.data() + instruction.access, instruction.accesses};
  }
  // What an opaque instruction reads and writes; of the others nothing, their micro-ops say it.
  Touched touched_by(const Instruction &instruction) const {
    return instruction.opaque ? touched[instruction.operand] : Touched{};
  }
  void clear() {
    instructions.clear();
    uops.clear();
    accesses.clear();
    touched.clear();
  }
  void shrink_to_fit() {
    instructions.shrink_to_fit();
    uops.shrink_to_fit();
    accesses.shrink_to_fit();
    touched.shrink_to_fit();
  }
};

} // namespace binary
