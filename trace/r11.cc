// A function loses r11, as a compiler sees it, if one of its instructions writes it, if it calls through a pointer or into another file, or if it
// calls a function that loses it. Calls that never come back do not count. A function may take r11 if, in the order in which its
// instructions lie, one reads it before one writes it; such a one is not said to lose it: it may save what it was given, and restore it, as
// the helpers of just-in-time compilers do.

#include "trace/r11.h"

#include <unordered_map>
#include <vector>

namespace trace {
namespace {

constexpr binary::RegisterSet kR11 = binary::register_bit(ASSAY_REG_R8 + 3);

bool is_r11(ZydisRegister reg) {
  return reg != ZYDIS_REGISTER_NONE &&
         ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) == ZYDIS_REGISTER_R11;
}

struct Use {
  bool reads = false, writes = false;
};

Use use_of(const DecodedInstruction &decoded) {
  Use use;
  for (unsigned i = 0; i < decoded.info.operand_count; i++) {
    const ZydisDecodedOperand &operand = decoded.operands[i];
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY)
      use.reads |= is_r11(operand.mem.base) || is_r11(operand.mem.index);
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER || !is_r11(operand.reg.value))
      continue;
    use.reads |= (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 || operand.size < 32;
    use.writes |= (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  }
  return use;
}

} // namespace

R11::R11(const binary::Program &program, const InstructionDecoder &decoder) {
  const image::Executable &executable = program.executable();
  std::unordered_map<uint64_t, std::vector<uint64_t>>
      callers; // functions of the file, by whom they call
  std::vector<uint64_t> work;
  DecodedInstruction decoded;
  for (const image::CodeRange &range : executable.functions()) {
    bool is_touched = false,
         loses = range.found_by == image::FoundBy::plt; // calls into another file
    for (uint64_t at = range.begin; at < range.end; at += decoded.info.length) {
      if (!decoder.decode(executable.bytes_from(at), decoded)) {
        takers_.insert(range.begin);
        break;
      }
      const Use use = use_of(decoded);
      if (use.reads && !is_touched)
        takers_.insert(range.begin);
      is_touched |= use.reads || use.writes;
      loses |= use.writes;
      if (decoded.info.mnemonic != ZYDIS_MNEMONIC_CALL)
        continue;
      if (decoded.operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        const auto slot = relative_operand(decoded);
        loses |= !slot || !program.never_returns_through(at + decoded.info.length + *slot);
        continue;
      }
      const uint64_t callee = at + decoded.info.length + decoded.operands[0].imm.value.u;
      if (!program.never_returns(callee))
        callers[callee].push_back(range.begin);
    }
    if (loses && !takers_.contains(range.begin) && losers_.insert(range.begin).second)
      work.push_back(range.begin);
  }
  while (!work.empty()) {
    const uint64_t callee = work.back();
    work.pop_back();
    for (uint64_t caller : callers[callee])
      if (!takers_.contains(caller) && losers_.insert(caller).second)
        work.push_back(caller);
  }
}

binary::Liveness::Known R11::known(uint64_t routine) const {
  auto unread = [this](const binary::Instruction &call) {
    const bool is_direct = call.flow == binary::Flow::call || call.flow == binary::Flow::jump;
    return is_direct && takers_.contains(call.target) ? binary::RegisterSet{0} : kR11;
  };
  auto lost = [this](const binary::Instruction &call) {
    return call.flow != binary::Flow::call || losers_.contains(call.target)
               ? kR11
               : binary::RegisterSet{0};
  };
  return {unread, lost, losers_.contains(routine) ? kR11 : binary::RegisterSet{0}};
}

} // namespace trace
