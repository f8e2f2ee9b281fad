// Which instructions a sweep may pass over; of those that sweep.
#pragma once

#include "binary/by_bytes.h"

#include <Zydis/Zydis.h>

namespace binary {

// Those that neither hand control elsewhere, nor pad, nor make an address or call the system.
// Whatever else a sweep comes to ask for must not be plain either.
class PlainInstructions {
public:
  // The length of the instruction at bytes[0], if it is known to be plain; else 0.
  unsigned length_at(std::span<const std::byte> bytes) const { return known_.find(bytes).length; }

  void note(std::span<const std::byte> bytes, const ZydisDecodedInstruction &decoded) {
    if (is_plain(decoded))
      known_.put(bytes, decoded.length, {});
  }

private:
  struct Nothing {};

  static bool is_plain(const ZydisDecodedInstruction &decoded) {
    switch (decoded.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_COND_BR: return false;
    default: break;
    }
    switch (decoded.mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_WRFSBASE: return false;
    case ZYDIS_MNEMONIC_MOV: return decoded.raw.imm[0].size == 0;
    default: return true;
    }
  }

  ByBytes<Nothing> known_;
};

} // namespace binary
