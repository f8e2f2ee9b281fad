// A function loses r11, as a compiler sees it, if one of its instructions writes it, if it calls through a pointer or into another file, or if it
// calls a function that loses it. Calls that never come back do not count. A function may take r11 if, in the order in which its
// instructions lie, one reads it before one writes it; such a one is not said to lose it: it may save what it was given, and restore it, as
// the helpers of just-in-time compilers do.
//
// Whether a caller makes use of what a function leaves in r11 is asked of the callers: those that read r11 at all, by their flow graphs. Who is
// called from elsewhere, or through a pointer, is called by the ABI. What holds for a function holds for those that it calls and jumps to.

#include "trace/r11.h"

#include <optional>
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

// Where a direct jump, or a branch, leads to.
std::optional<uint64_t> jumps_to(const DecodedInstruction &decoded, uint64_t at) {
  const bool is_jump = decoded.info.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
                       decoded.info.meta.category == ZYDIS_CATEGORY_COND_BR;
  if (!is_jump || decoded.operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
    return std::nullopt;
  return at + decoded.info.length + decoded.operands[0].imm.value.u;
}

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

struct R11::Function {
  uint64_t address = 0;
  bool reads = false;
  std::vector<uint64_t> calls;
  std::vector<uint64_t> leads_to; // by calls, by jumps
};

R11::R11(const binary::Program &program, const InstructionDecoder &decoder) {
  const image::Executable &executable = program.executable();
  std::unordered_map<uint64_t, std::vector<uint64_t>>
      callers; // functions of the file, by whom they call
  std::vector<uint64_t> work;
  std::vector<Function> functions;
  DecodedInstruction decoded;
  for (const image::CodeRange &range : executable.functions()) {
    Function &function = functions.emplace_back();
    function.address = range.begin;
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
      function.reads |= use.reads;
      is_touched |= use.reads || use.writes;
      loses |= use.writes;
      if (decoded.info.mnemonic != ZYDIS_MNEMONIC_CALL) {
        if (const auto target = jumps_to(decoded, at);
            target && (*target < range.begin || *target >= range.end))
          function.leads_to.push_back(*target);
        continue;
      }
      if (decoded.operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        const auto slot = relative_operand(decoded);
        loses |= !slot || !program.never_returns_through(at + decoded.info.length + *slot);
        continue;
      }
      const uint64_t callee = at + decoded.info.length + decoded.operands[0].imm.value.u;
      if (program.never_returns(callee))
        continue;
      callers[callee].push_back(range.begin);
      function.calls.push_back(callee);
      function.leads_to.push_back(callee);
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
  find_keepers(program, functions);
}

void R11::find_keepers(const binary::Program &program, const std::vector<Function> &functions) {
  std::vector<const binary::Routine *> work;
  auto keep = [&](uint64_t callee) {
    const binary::Routine *routine = program.routine_at(callee);
    if (routine && keepers_.insert(routine->address()).second)
      work.push_back(routine);
  };
  std::unordered_map<const binary::Routine *, Function> routines;
  for (const Function &function : functions) {
    Function &whole = routines[program.routine_at(function.address)];
    whole.reads |= function.reads;
    whole.calls.insert(whole.calls.end(), function.calls.begin(), function.calls.end());
    whole.leads_to.insert(whole.leads_to.end(), function.leads_to.begin(), function.leads_to.end());
  }
  binary::Liveness::Known known = this->known(0);
  known.lost = [](const binary::Instruction &call) {
    return call.flow == binary::Flow::call ? binary::RegisterSet{0} : kR11;
  };
  known.dead_at_return = kR11;
  binary::Decoder decoder;
  for (const auto &[routine, function] : routines) {
    if (!function.reads || function.calls.empty())
      continue;
    binary::FlowGraph graph;
    if (routine)
      graph = binary::flow_graph(program, *routine, decoder);
    if (!routine || graph.why_not != binary::WhyNot::understood) {
      for (uint64_t callee : function.calls)
        keep(callee);
      continue;
    }
    const binary::Liveness liveness(graph, known);
    for (uint32_t b = 0; b < graph.blocks.size(); b++) {
      if (graph.blocks[b].is_dispatch())
        continue;
      const std::vector<binary::VariableSet> live = liveness.along(b);
      const auto instructions = graph.instructions_of(graph.blocks[b]);
      for (size_t i = 0; i < instructions.size(); i++)
        if (instructions[i].flow == binary::Flow::call && live[i + 1] & kR11)
          keep(instructions[i].target);
    }
  }
  while (!work.empty()) {
    const binary::Routine *routine = work.back();
    work.pop_back();
    for (uint64_t callee : routines[routine].leads_to)
      keep(callee);
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
  return {unread, lost, keepers_.contains(routine) ? binary::RegisterSet{0} : kR11};
}

} // namespace trace
