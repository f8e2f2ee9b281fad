// A function may take r11 if, in the order in which its instructions lie, one reads it before one
// writes it, or if it leads to such a function before that. Code at an address where no function
// begins may, too. A call through a pointer is taken to give it something if it was written before,
// and not read since. Where the file has a function that takes it, so is each jump through a
// pointer: compilers that give each block of a function a section and an unwind table of its own
// (clang's -fbasic-block-sections) make functions of blocks, which jump to each other by tables.
//
// Whether a caller makes use of what a function leaves in r11 is asked of the callers: those that
// read r11 at all, by their flow graphs. What holds for a function holds for those that it calls
// and jumps to. Who is called from another file is called by the ABI; and so is who is called
// through a pointer, unless the compiler knows where that leads (-mforce-indirect-call,
// -mcmodel=large): it is computed from constants then, in the order of instructions. Then it may be
// any function that does not lose r11, as a compiler sees it: that writes it, calls into another
// file, or calls a function that loses it. Calls that never come back do not count.

#include "trace/r11.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <vector>

namespace trace {
namespace {

constexpr binary::RegisterSet kOnlyR11 = binary::register_bit(kR11);

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
  // xor r11d, r11d makes it zero, whatever it was.
  const bool is_difference =
      decoded.info.mnemonic == ZYDIS_MNEMONIC_XOR || decoded.info.mnemonic == ZYDIS_MNEMONIC_SUB;
  if (is_difference && use.writes && decoded.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
      decoded.operands[0].reg.value == decoded.operands[1].reg.value &&
      decoded.operands[0].size >= 32)
    use.reads = false;
  return use;
}

// Which general registers hold what was computed from constants and addresses of the file, in the
// order in which instructions lie.
class Constants {
public:
  bool holds(ZydisRegister reg) const { return held_ & bit(reg); }
  void step(const DecodedInstruction &decoded) {
    if (decoded.info.operand_count == 0 ||
        decoded.operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
        !(decoded.operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
      return;
    const binary::RegisterSet written = bit(decoded.operands[0].reg.value);
    bool is_constant = false;
    const ZydisMnemonic what = decoded.info.mnemonic;
    if (what == ZYDIS_MNEMONIC_MOV || what == ZYDIS_MNEMONIC_LEA || what == ZYDIS_MNEMONIC_ADD)
      for (unsigned i = 0; i < 2; i++) {
        const ZydisDecodedOperand &operand = decoded.operands[i];
        is_constant |= operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && what == ZYDIS_MNEMONIC_MOV;
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && what == ZYDIS_MNEMONIC_LEA)
          is_constant |= operand.mem.base == ZYDIS_REGISTER_RIP || holds(operand.mem.base) ||
                         holds(operand.mem.index);
        if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && (i == 1 || what == ZYDIS_MNEMONIC_ADD))
          is_constant |= holds(operand.reg.value);
      }
    held_ = static_cast<binary::RegisterSet>(is_constant ? held_ | written : held_ & ~written);
  }

private:
  static binary::RegisterSet bit(ZydisRegister reg) {
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15
               ? binary::RegisterSet{0}
               : static_cast<binary::RegisterSet>(1u << (whole - ZYDIS_REGISTER_RAX));
  }
  binary::RegisterSet held_ = 0;
};

// Adds to a set what its members lead to, and so on.
void add_all_behind(std::unordered_set<uint64_t> &set,
                    const std::unordered_map<uint64_t, std::vector<uint64_t>> &leads_to) {
  std::vector<uint64_t> work(set.begin(), set.end());
  while (!work.empty()) {
    const auto behind = leads_to.find(work.back());
    work.pop_back();
    if (behind != leads_to.end())
      for (uint64_t each : behind->second)
        if (set.insert(each).second)
          work.push_back(each);
  }
}

} // namespace

struct R11::Function {
  uint64_t address = 0;
  bool reads = false, loses = false, is_thunk = false;
  bool calls_constants = false; // through registers
  std::vector<uint64_t> calls;
  std::vector<uint64_t> leads_to;  // by calls, by jumps
  std::vector<uint64_t> hands_on;  // of these, those before which it is as it was given
  std::vector<uint64_t> far_jumps; // where it jumps through pointers
};

R11::R11(const binary::Program &program, const InstructionDecoder &decoder) {
  Functions functions;
  for (const image::CodeRange &range : program.executable().functions()) {
    known_.insert(range.begin);
    functions.push_back(look_at(program, decoder, range));
  }
  binary::Decoder lifts; // one for all routines: it remembers what it has decoded
  const std::vector<uint64_t> take =
      those_who_take(program, {takers_.begin(), takers_.end()}, lifts);
  takers_ = {take.begin(), take.end()};
  // A thunk calls into its own middle, and then its return is a jump to anywhere: all that is there is given on.
  for (Function &function : functions)
    for (uint64_t callee : function.calls)
      if (!known_.contains(callee)) {
        function.is_thunk = true;
        takers_.insert(function.address);
      }
  add_those_who_jump_anywhere(program, functions, lifts);
  add_takers(functions);
  find_keepers(program, functions, lifts);
}

R11::Function R11::look_at(const binary::Program &program, const InstructionDecoder &decoder,
                           const image::CodeRange &range) {
  Function function;
  function.address = range.begin;
  function.loses = range.found_by == image::FoundBy::plt; // calls into another file
  bool is_touched = false, is_given = false;
  Constants constants;
  DecodedInstruction decoded;
  for (uint64_t at = range.begin; at < range.end; at += decoded.info.length) {
    if (!decoder.decode(program.executable().bytes_from(at), decoded)) {
      takers_.insert(range.begin);
      break;
    }
    const Use use = use_of(decoded);
    if (use.reads && !is_touched)
      takers_.insert(range.begin);
    is_touched |= use.reads || use.writes;
    if (use.reads || use.writes)
      is_given = use.writes && !use.reads;
    function.reads |= use.reads;
    function.loses |= use.writes;
    constants.step(decoded);
    const bool is_call = decoded.info.mnemonic == ZYDIS_MNEMONIC_CALL;
    const bool is_direct = decoded.operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    const bool is_jump = decoded.info.mnemonic == ZYDIS_MNEMONIC_JMP;
    if ((is_call || is_jump) && !is_direct && is_given)
      given_.insert(at);
    if (is_jump && !is_direct && !relative_operand(decoded))
      function.far_jumps.push_back(at);
    if (!is_call) {
      if (const auto target = jumps_to(decoded, at);
          target && (*target < range.begin || *target >= range.end)) {
        function.leads_to.push_back(*target);
        if (!is_touched)
          function.hands_on.push_back(*target);
      }
      continue;
    }
    is_given = false;
    if (!is_direct) {
      const ZydisDecodedOperand &pointer = decoded.operands[0];
      if (pointer.type == ZYDIS_OPERAND_TYPE_REGISTER && constants.holds(pointer.reg.value)) {
        function.calls_constants = true;
        constant_calls_.insert(at);
        continue;
      }
      const auto slot = relative_operand(decoded);
      function.loses |= !slot || !program.never_returns_through(at + decoded.info.length + *slot);
      continue;
    }
    const uint64_t callee = at + decoded.info.length + decoded.operands[0].imm.value.u;
    if (program.never_returns(callee))
      continue;
    function.calls.push_back(callee);
    function.leads_to.push_back(callee);
    if (!is_touched)
      function.hands_on.push_back(callee);
  }
  return function;
}

// Calls act(graph, liveness) with what is live if nobody makes use of what the routine leaves in
// it. False if the routine is not understood.
template <class Act>
bool R11::look_into(const binary::Program &program, const binary::Routine *routine,
                    binary::Decoder &lifts, Act act) const {
  if (!routine)
    return false;
  const binary::FlowGraph graph = binary::flow_graph(program, *routine, lifts);
  if (graph.why_not != binary::WhyNot::understood)
    return false;
  binary::Liveness::Known known = this->known(0);
  known.dead_at_return = kOnlyR11;
  act(graph, binary::Liveness(graph, known));
  return true;
}

// Of these functions, those that read it before they write it, or lead to who may, in whatever order
// their blocks lie. One graph for all that a routine has: in some there are hundreds.
std::vector<uint64_t> R11::those_who_take(const binary::Program &program,
                                          const std::vector<uint64_t> &functions,
                                          binary::Decoder &lifts) const {
  std::vector<uint64_t> take;
  std::unordered_map<const binary::Routine *, std::vector<uint64_t>> of_routine;
  for (uint64_t function : functions)
    of_routine[program.routine_at(function)].push_back(function);
  for (const auto &[routine, members] : of_routine) {
    std::unordered_set<uint64_t> do_not;
    look_into(program, routine, lifts,
              [&](const binary::FlowGraph &graph, const binary::Liveness &liveness) {
                for (uint32_t entry : graph.entries)
                  if (!(liveness.at(entry) & kOnlyR11))
                    do_not.insert(graph.instructions_of(graph.blocks[entry]).front().address);
              });
    std::ranges::copy_if(members, std::back_inserter(take),
                         [&](uint64_t member) { return !do_not.contains(member); });
  }
  return take;
}

void R11::add_those_who_jump_anywhere(const binary::Program &program, const Functions &functions,
                                      binary::Decoder &lifts) {
  if (takers_.empty())
    return;
  std::unordered_map<uint64_t, const Function *> jump;
  std::vector<uint64_t> look_at;
  for (const Function &function : functions)
    if (!function.far_jumps.empty()) {
      given_.insert(function.far_jumps.begin(), function.far_jumps.end());
      if (!takers_.contains(function.address) && jump.emplace(function.address, &function).second)
        look_at.push_back(function.address);
    }
  // Then those who lead to one that was found, and so on.
  while (!look_at.empty()) {
    const std::vector<uint64_t> found = those_who_take(program, look_at, lifts);
    takers_.insert(found.begin(), found.end());
    const std::unordered_set<uint64_t> is_new(found.begin(), found.end());
    look_at.clear();
    for (const auto &[address, function] : jump)
      if (!takers_.contains(address) &&
          std::ranges::any_of(function->leads_to, [&](uint64_t to) { return is_new.contains(to); }))
        look_at.push_back(address);
  }
}

// Who hands it on as it was given to one that may take it may take it, too.
void R11::add_takers(const Functions &functions) {
  std::unordered_map<uint64_t, std::vector<uint64_t>> handed_by;
  for (const Function &function : functions)
    for (uint64_t to : function.hands_on)
      handed_by[to].push_back(function.address);
  add_all_behind(takers_, handed_by);
}

// One that takes it may save what it was given, and restore it, as the helpers of just-in-time compilers do.
std::unordered_set<uint64_t> R11::losers_of(const Functions &functions) const {
  std::unordered_map<uint64_t, std::vector<uint64_t>> callers; // functions, by whom they call
  std::unordered_set<uint64_t> losers;
  for (const Function &function : functions) {
    if (takers_.contains(function.address))
      continue;
    for (uint64_t callee : function.calls)
      callers[callee].push_back(function.address);
    if (function.loses)
      losers.insert(function.address);
  }
  add_all_behind(losers, callers);
  return losers;
}

void R11::find_keepers(const binary::Program &program, const Functions &functions,
                       binary::Decoder &lifts) {
  auto routine_of = [&](uint64_t address) {
    const binary::Routine *routine = program.routine_at(address);
    return routine ? routine->address() : address;
  };
  auto keep = [&](uint64_t callee) { keepers_.insert(routine_of(callee)); };
  std::unordered_map<uint64_t, Function> routines;
  std::unordered_map<uint64_t, std::vector<uint64_t>> leads_to; // routines
  std::unordered_set<uint64_t> thunks;
  for (const Function &function : functions) {
    const uint64_t routine = routine_of(function.address);
    Function &whole = routines[routine];
    whole.reads |= function.reads;
    whole.calls_constants |= function.calls_constants;
    whole.calls.insert(whole.calls.end(), function.calls.begin(), function.calls.end());
    for (uint64_t to : function.leads_to)
      leads_to[routine].push_back(routine_of(to));
    if (function.is_thunk) {
      thunks.insert(function.address);
      keep(function.address);
    }
  }
  auto leads_anywhere = [&](uint64_t callee) {
    return thunks.contains(callee) || !known_.contains(callee);
  };
  bool any_behind_pointer = false; // somebody reads it behind a call through a pointer
  auto look_behind_calls = [&](const binary::FlowGraph &graph, const binary::Liveness &liveness) {
    for (uint32_t b = 0; b < graph.blocks.size(); b++) {
      if (graph.blocks[b].is_dispatch())
        continue;
      const std::vector<binary::VariableSet> live = liveness.along(b);
      const auto instructions = graph.instructions_of(graph.blocks[b]);
      for (size_t i = 0; i < instructions.size(); i++) {
        const binary::Instruction &call = instructions[i];
        if (!call.is_call() || !(live[i + 1] & kOnlyR11))
          continue;
        if (call.flow == binary::Flow::call) {
          keep(call.target());
          any_behind_pointer |= leads_anywhere(call.target());
        } else {
          any_behind_pointer |= constant_calls_.contains(call.address);
        }
      }
    }
  };
  for (const auto &[address, function] : routines) {
    if (!function.reads || (function.calls.empty() && !function.calls_constants) ||
        look_into(program, program.routine_at(address), lifts, look_behind_calls))
      continue;
    for (uint64_t callee : function.calls)
      keep(callee);
    any_behind_pointer |=
        function.calls_constants || std::ranges::any_of(function.calls, leads_anywhere);
  }
  if (any_behind_pointer) {
    const std::unordered_set<uint64_t> losers = losers_of(functions);
    for (const Function &function : functions)
      if (!losers.contains(function.address))
        keep(function.address);
  }
  add_all_behind(keepers_, leads_to);
}

binary::Liveness::Known R11::known(uint64_t routine) const {
  auto unread = [this](const binary::Instruction &call) {
    const bool is_direct = call.flow == binary::Flow::call || call.flow == binary::Flow::jump;
    const bool may_read = is_direct
                              ? takers_.contains(call.target()) || !known_.contains(call.target())
                              : given_.contains(call.address);
    return may_read ? binary::RegisterSet{0} : kOnlyR11;
  };
  return {unread, keepers_.contains(routine) ? binary::RegisterSet{0} : kOnlyR11};
}

} // namespace trace
