// What moving code asks of an instruction's encoding.
#pragma once

#include "trace/assembler.h"

#include <Zydis/Zydis.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace trace {

struct DecodedInstruction {
  ZydisDecodedInstruction info;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

class InstructionDecoder {
public:
  InstructionDecoder() {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }
  bool decode(std::span<const std::byte> bytes, DecodedInstruction &to) const {
    return ZYAN_SUCCESS(
        ZydisDecoderDecodeFull(&decoder_, bytes.data(), bytes.size(), &to.info, to.operands));
  }

private:
  ZydisDecoder decoder_;
};

inline Gpr gpr_of(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  return static_cast<Gpr>(whole - ZYDIS_REGISTER_RAX);
}

// Of an operand relative to rip: its distance from the next instruction.
inline std::optional<uint64_t> relative_operand(const DecodedInstruction &decoded) {
  for (unsigned i = 0; i < decoded.info.operand_count; i++)
    if (const ZydisDecodedOperand &operand = decoded.operands[i];
        operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base == ZYDIS_REGISTER_RIP)
      return static_cast<uint64_t>(operand.mem.disp.value);
  return std::nullopt;
}

} // namespace trace
