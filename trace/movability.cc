// It is asked from cheap to dear: what symbols and unwind tables say, then the flow graph, then
// whether unwind tables can be written again, then whether the jumps to the moved code fit. The
// first obstacle is the answer: where the control flow is not known, the graph answers nothing else.

#include "trace/movability.h"

#include "binary/obstacles.h"
#include "trace/unwind.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace trace {

using binary::Flow;
using binary::FlowGraph;
using binary::Instruction;
using binary::Routine;

Movability::Movability(const binary::Program &program)
    : executable_(program.executable()), own_frames_(executable_) {}

WhyUnmoved Movability::at_first_sight(const Routine &routine) const {
  for (const image::CodeRange &range : routine.ranges)
    if (range.found_by == image::FoundBy::plt)
      return WhyUnmoved::stub;
  for (const image::CodeRange &range : routine.ranges)
    if (range.has_guessed_end())
      return WhyUnmoved::guessed_limits;
  return WhyUnmoved::moved;
}

MovabilityAnswer Movability::of(const Routine &routine, const FlowGraph &graph) const {
  if (const WhyUnmoved why = at_first_sight(routine); why != WhyUnmoved::moved)
    return {why, {}, {}};
  Frames frames = frames_of(routine);
  for (const image::UnwindRange *frame : frames)
    if (frame->common->is_signal)
      return {WhyUnmoved::signal_return, {}, {}};
  if (const WhyUnmoved why = by_graph(routine, graph); why != WhyUnmoved::moved)
    return {why, {}, {}};
  if (own_frames_.are_of(routine, graph, !frames.empty()))
    return {WhyUnmoved::own_frames, {}, {}};
  for (const image::UnwindRange *frame : frames)
    if (!UnwindTables::can_move(executable_, *frame))
      return {WhyUnmoved::unwind_table, {}, {}};
  auto jumps = original_jumps(executable_, decoder_, routine, graph);
  if (!jumps)
    return {WhyUnmoved::no_room, {}, {}};
  return {WhyUnmoved::moved, std::move(frames), std::move(*jumps)};
}

Movability::Frames Movability::frames_of(const Routine &routine) const {
  const auto &all = executable_.unwind_ranges();
  Frames found;
  for (const image::CodeRange &range : routine.ranges) {
    auto at = std::lower_bound(all.begin(), all.end(), range.end,
                               [](const auto &each, uint64_t end) { return each.begin < end; });
    constexpr int kOverlapping = 8; // entries that begin before the range are few
    for (int i = 0; i < kOverlapping || (at != all.begin() && std::prev(at)->begin >= range.begin);
         i++) {
      if (at == all.begin())
        break;
      --at;
      if (at->end > range.begin && std::find(found.begin(), found.end(), &*at) == found.end())
        found.push_back(&*at);
    }
  }
  return found;
}

WhyUnmoved Movability::by_graph(const Routine &routine, const FlowGraph &graph) const {
  if (graph.why_not != binary::WhyNot::understood)
    return WhyUnmoved::not_understood;
  if (binary::has_shared_table(routine, graph))
    return WhyUnmoved::shared_table;
  if (binary::has_overlaps(graph))
    return WhyUnmoved::overlaps;
  if (binary::changes_segments(graph))
    return WhyUnmoved::changes_segments;
  if (goes_on_behind_trap(routine, graph))
    return WhyUnmoved::goes_on_behind_trap;
  for (const Instruction &instruction : graph.code.instructions) {
    if (instruction.flow == Flow::next && has_relative_target(instruction))
      return WhyUnmoved::relative_operand;
    if (asks_caller(instruction, graph))
      return WhyUnmoved::asks_caller;
    if (has_computed_address(instruction))
      return WhyUnmoved::computed_address;
  }
  if (is_restartable(routine))
    return WhyUnmoved::restartable;
  if (catches_faults(graph))
    return WhyUnmoved::catches_faults;
  return WhyUnmoved::moved;
}

// A landing pad to which no call leads: of instructions that fault (-fnon-call-exceptions), whose handler throws.
bool Movability::catches_faults(const FlowGraph &graph) const {
  const auto &pads = executable_.landing_pads();
  if (pads.empty())
    return false;
  std::vector<uint64_t> begins, all;
  for (const binary::Block &block : graph.blocks)
    if (!block.is_dispatch())
      begins.push_back(graph.instructions_of(block).front().address);
  for (const Instruction &instruction : graph.code.instructions)
    all.push_back(instruction.address);
  std::ranges::sort(begins);
  std::ranges::sort(all);
  auto pad = std::ranges::lower_bound(pads, all.empty() ? 0 : all.front(), {},
                                      &image::LandingPad::call_end);
  for (; pad != pads.end() && !all.empty() && pad->call_begin <= all.back(); ++pad) {
    const auto within = std::ranges::lower_bound(all, pad->call_begin);
    if (within != all.end() && *within < pad->call_end &&
        !std::ranges::binary_search(begins, pad->pad))
      return true;
  }
  return false;
}

// The kernel compares where a thread is with where the sequence lies: moved, it would never be begun anew.
bool Movability::is_restartable(const Routine &routine) const {
  const auto &all = executable_.restartable_sequences();
  return std::ranges::any_of(all, [&](const image::RestartableSequence &sequence) {
    return std::ranges::any_of(routine.ranges, [&](const image::CodeRange &range) {
      return (range.begin < sequence.end && sequence.begin < range.end) ||
             (range.begin <= sequence.abort && sequence.abort < range.end);
    });
  });
}

// Control comes back behind a breakpoint, whose handler just returns. Behind other traps handlers
// go on who skip them: that is looked at where nothing else leads there.
bool Movability::goes_on_behind_trap(const Routine &routine, const FlowGraph &graph) const {
  std::vector<uint64_t> reached;
  for (const binary::Block &block : graph.blocks)
    if (!block.is_dispatch())
      reached.push_back(graph.instructions_of(block).front().address);
  std::ranges::sort(reached);
  for (const binary::Block &block : graph.blocks) {
    if (block.is_dispatch() || graph.last_of(block).flow != binary::Flow::stop)
      continue;
    const Instruction &trap = graph.last_of(block);
    const bool is_breakpoint = trap.mnemonic == ZYDIS_MNEMONIC_INT3;
    DecodedInstruction decoded;
    for (uint64_t at = trap.end(); routine.contains(at); at += decoded.info.length) {
      const bool is_reached = std::ranges::binary_search(reached, at);
      if (is_reached && !is_breakpoint)
        break;
      if (is_reached || !decoder_.decode(executable_.bytes_from(at), decoded))
        return true;
      if (decoded.info.mnemonic != ZYDIS_MNEMONIC_NOP &&
          decoded.info.mnemonic != ZYDIS_MNEMONIC_INT3)
        return true;
    }
  }
  return false;
}

bool Movability::has_relative_target(const Instruction &instruction) const {
  DecodedInstruction decoded;
  if (!decoder_.decode(executable_.bytes_from(instruction.address), decoded))
    return true;
  for (unsigned i = 0; i < decoded.info.operand_count; i++) {
    const ZydisDecodedOperand &operand = decoded.operands[i];
    if ((operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.is_relative) ||
        (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base == ZYDIS_REGISTER_EIP))
      return true;
  }
  return false;
}

// dlsym and dlopen look up whose code called them.
bool Movability::asks_caller(const Instruction &instruction, const FlowGraph &graph) const {
  std::string_view name;
  if (instruction.flow == Flow::call || instruction.flow == Flow::jump) {
    name = executable_.import_of_stub(instruction.target());
  } else if (instruction.flow == Flow::indirect_call || instruction.flow == Flow::indirect_jump) {
    for (const assay_uop &uop : graph.code.uops_of(instruction))
      if (uop.op == ASSAY_UOP_load && uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO)
        name = executable_.import_of_slot(static_cast<uint64_t>(int64_t{uop.i}));
  }
  return name == "dlsym" || name == "dlvsym" || name == "dlopen" || name == "dlmopen";
}

// A bit of a string of bits in memory whose number is in a register; xlat, which adds al. No lea computes that.
bool Movability::has_computed_address(const Instruction &instruction) const {
  const auto bytes = executable_.bytes_from(instruction.address);
  const auto own = bytes.first(std::min<size_t>(bytes.size(), instruction.length));
  const bool may = std::any_of(own.begin(), own.end(), [](std::byte each) {
    const auto opcode = std::to_integer<unsigned>(each);
    return opcode == 0xd7 || (opcode & 0xe7) == 0xa3 || opcode == 0x67; // decoding takes longer
  });
  DecodedInstruction decoded;
  if (!may || !decoder_.decode(bytes, decoded))
    return false;
  if (decoded.info.address_width == 32)
    return std::any_of(decoded.operands, decoded.operands + decoded.info.operand_count,
                       [](const ZydisDecodedOperand &operand) {
                         const bool is_stack =
                             operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
                             operand.mem.base == ZYDIS_REGISTER_RSP;
                         return operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
                                operand.mem.type == ZYDIS_MEMOP_TYPE_MEM && !is_stack;
                       });
  switch (decoded.info.mnemonic) {
  case ZYDIS_MNEMONIC_XLAT: return true;
  case ZYDIS_MNEMONIC_BT:
  case ZYDIS_MNEMONIC_BTS:
  case ZYDIS_MNEMONIC_BTR:
  case ZYDIS_MNEMONIC_BTC:
    return decoded.operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
           decoded.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
  default: return false;
  }
}

const char *why_unmoved_name(WhyUnmoved why) {
  switch (why) {
#define ASSAY_WHY_UNMOVED(name, meaning)                                                           \
  case WhyUnmoved::name: return #name;
#include "trace/why_unmoved.def"
  case WhyUnmoved::count: break;
  }
  return "";
}

const char *why_unmoved_meaning(WhyUnmoved why) {
  switch (why) {
#define ASSAY_WHY_UNMOVED(name, meaning)                                                           \
  case WhyUnmoved::name: return meaning;
#include "trace/why_unmoved.def"
  case WhyUnmoved::count: break;
  }
  return "";
}

} // namespace trace
