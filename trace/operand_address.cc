// One lea computes the address, from the operand as the decoder names it. It has one form for all
// operands: a SIB byte and 32 bits of displacement, or rip with a fix-up.
//
// Where operand and access are not the same: a push or a call writes below the rsp that it names;
// pop to memory relative to rsp takes rsp as it is afterwards; several accesses of one operand lie
// behind each other; an access without an operand in memory is taken to be at rsp.

#include "trace/operand_address.h"

#include <algorithm>
#include <bit>

namespace trace {
namespace {

using binary::Access;
using binary::Instruction;

void lea(ModuleCode &module, Gpr to, const Instruction &instruction,
         const ZydisDecodedOperand &operand, int64_t more) {
  const auto &mem = operand.mem;
  const int64_t offset = (mem.disp.has_displacement ? mem.disp.value : 0) + more;
  if (mem.base == ZYDIS_REGISTER_RIP) {
    module.code.byte(0x48 | (to >> 3) << 2);
    module.code.byte(0x8d);
    module.code.byte((to & 7) << 3 | 5);
    module.fixups.push_back({module.code.size(), ASSAY_FIXUP_image});
    module.code.word(static_cast<uint32_t>(instruction.end() + static_cast<uint64_t>(offset) -
                                           (module.code.size() + 4)));
    return;
  }
  const bool has_base = mem.base != ZYDIS_REGISTER_NONE,
             has_index = mem.index != ZYDIS_REGISTER_NONE;
  const Gpr base = has_base ? gpr_of(mem.base) : 5, index = has_index ? gpr_of(mem.index) : 4;
  const unsigned scale = has_index ? static_cast<unsigned>(std::countr_zero(mem.scale)) : 0;
  module.code.byte(0x48 | (to >> 3) << 2 | (has_index ? (index >> 3) << 1 : 0) |
                   (has_base ? base >> 3 : 0));
  module.code.byte(0x8d);
  module.code.byte((has_base ? 0x80 : 0) | (to & 7) << 3 | 4);
  module.code.byte(scale << 6 | (index & 7) << 3 | (base & 7));
  module.code.word(static_cast<int32_t>(offset));
}

} // namespace

void emit_address(ModuleCode &module, const binary::Code &code, const Instruction &instruction,
                  uint32_t number, Gpr to) {
  DecodedInstruction decoded;
  module.decoder.decode(module.program.executable().bytes_from(instruction.address), decoded);
  const Access &access = code.accesses[number];
  // Operands in memory, each as often as it is accessed; those that the encoding names come first.
  std::vector<const ZydisDecodedOperand *> found;
  for (unsigned i = 0; i < decoded.info.operand_count; i++) {
    const ZydisDecodedOperand &operand = decoded.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type != ZYDIS_MEMOP_TYPE_MEM)
      continue;
    const bool does = access.write ? (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0
                                   : (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    if (does)
      found.push_back(&operand);
  }
  size_t which = 0; // of the accesses of this kind
  for (uint32_t a = instruction.access; a < number; a++)
    which += code.accesses[a].write == access.write;
  if (found.empty()) {
    module.code.lea(to, kRsp, 0);
    return;
  }
  const ZydisDecodedOperand &operand = *found[std::min(which, found.size() - 1)];
  int64_t more = 0;
  const bool is_push = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && access.write &&
                       operand.mem.base == ZYDIS_REGISTER_RSP;
  if (is_push)
    more = -static_cast<int64_t>(access.size);
  // pop [rsp + …]: the operand's address is computed with what rsp is afterwards.
  if (decoded.info.mnemonic == ZYDIS_MNEMONIC_POP && access.write)
    more = operand.mem.base == ZYDIS_REGISTER_RSP ? access.size : 0;
  // Several accesses of one operand lie behind each other.
  for (uint32_t a = instruction.access; a < number; a++)
    if (code.accesses[a].write == access.write && which >= found.size())
      more += code.accesses[a].size;
  lea(module, to, instruction, operand, more);
}

} // namespace trace
