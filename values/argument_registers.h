// Which of the ABI's argument registers a function has arguments in, as far as its code says it.
#pragma once

#include "binary/decoder.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace values {

// The six of the ABI.
extern const binary::RegisterSet kArgumentRegisters;

// Set of general registers that hold arguments of the function whose code begins with these bytes:
// those of the six that it reads before it writes them or a part of them, on its way to the first
// call, return or direct or indirect jump; branches are passed as if they were not taken. Those that
// are read later are missed. No reads are: of a register that an instruction makes without regard to
// what was there, a push, and a variadic function's stores to its register save area.
binary::RegisterSet argument_registers(binary::Decoder &decoder, std::span<const std::byte> code,
                                       uint64_t address);

// Of an operation whose operands are one register, the value does not depend on the register: xor eax, eax.
bool forgets_operand(const assay_uop &uop);

} // namespace values
