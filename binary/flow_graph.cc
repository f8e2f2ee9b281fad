// Control is followed from the entries (binary/code_walk.h). When nothing direct is left, the indirect
// jumps that were met are looked at (binary/indirect_jumps.h); what they reach is followed in turn,
// until nothing is new. Then each of them must be proven, or the routine is not understood:
//
//   through a table    the index is bounded on all ways, or nothing of the routine is left unreached
//   to labels          what it goes to was a pointer as it stood in memory or in a register: one of
//                      the addresses that this file has, or makes, within the routine
//   out of it          the same, and the stack pointer and saved registers are back; nothing of the
//                      routine is left unreached
//
// To take a jump that no table explains for a tail call was refused: hand-written assembly, switches
// without a default, and tables whose base is kept in a register over a loop all looked like it.

#include "binary/flow_graph.h"

#include "binary/code_walk.h"
#include "binary/indirect_jumps.h"
#include "binary/origins.h"

#include <algorithm>
#include <optional>

namespace binary {
namespace {

class Builder {
public:
  Builder(const Program &program, const Routine &routine, Decoder &decoder, Calls calls,
          std::set<uint64_t> tables)
      : routine_(routine), walk_(program, routine, decoder, calls),
        jumps_(walk_, std::move(tables)) {}

  FlowGraph build() {
    for (uint64_t entry : routine_.entries)
      walk_.reach(entry);
    walk_.follow();
    while (walk_.why_not == WhyNot::understood && jumps_.resolve())
      walk_.follow();
    has_read_too_far_ = jumps_.have_read_too_far();
    make_blocks();
    if (walk_.why_not == WhyNot::understood)
      prove();
    graph_.why_not = walk_.why_not;
    graph_.where = walk_.where;
    graph_.code.shrink_to_fit();
    return std::move(graph_);
  }

  const std::set<uint64_t> &tables() const { return jumps_.tables(); }
  // A table, so that there are edges too many: build() is better done again with tables().
  bool has_read_too_far() const { return has_read_too_far_; }

private:
  // The instructions anew, block by block, and a dispatch if there are jumps to labels.
  void make_blocks() {
    graph_.code.instructions.reserve(walk_.code.instructions.size());
    graph_.code.uops.reserve(walk_.code.uops.size());
    graph_.code.accesses.reserve(walk_.code.accesses.size());
    leaders_ = walk_.leaders();
    graph_.blocks.reserve(leaders_.size());
    std::vector<uint32_t> instructions;
    for (uint64_t leader : leaders_) {
      instructions.clear();
      walk_.append_block(leader, instructions);
      const uint32_t last = instructions.back();
      Block block;
      block.first = static_cast<uint32_t>(graph_.code.instructions.size());
      block.count = static_cast<uint32_t>(instructions.size());
      for (uint32_t index : instructions)
        append(walk_.code.instructions[index]);
      if (auto out = walk_.leaves(last))
        block.leaves = *out;
      if (auto behind = walk_.runs_on(last))
        block.runs_on = *behind;
      last_of_.push_back(last);
      graph_.blocks.push_back(std::move(block));
    }
    for (uint32_t b = 0; b < last_of_.size(); b++)
      if (const auto *targets = walk_.targets_of(last_of_[b]))
        for (uint64_t target : *targets)
          connect(b, target);
      else
        connect(b, graph_.last_of(graph_.blocks[b]).end());
    make_dispatch();
    for (uint64_t entry : routine_.entries)
      if (uint32_t at = block_at(entry); at != kNone)
        graph_.entries.push_back(at);
    if (graph_.entries.empty())
      walk_.give_up(WhyNot::undecodable, routine_.address());
    for (auto &[address, jump] : jumps_.jumps)
      if (jump.kind == JumpKind::table)
        graph_.tables.push_back(jump.table);
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t block_at(uint64_t leader) const {
    auto found = std::lower_bound(leaders_.begin(), leaders_.end(), leader);
    return found == leaders_.end() || *found != leader
               ? kNone
               : static_cast<uint32_t>(found - leaders_.begin());
  }

  void connect(uint32_t from, uint64_t target) {
    if (uint32_t to = block_at(target); to != kNone)
      connect(from, to);
  }
  void connect(uint32_t from, uint32_t to) {
    auto &before = graph_.blocks[to].predecessors;
    if (!before.empty() && before.back() == from) // a branch to the next instruction
      return;
    graph_.blocks[from].successors.push_back(to);
    before.push_back(from);
  }

  void make_dispatch() {
    std::vector<uint32_t> from;
    for (uint32_t b = 0; b < last_of_.size(); b++)
      if (const auto *jump = jump_of(b); jump && jump->kind == JumpKind::pointer)
        from.push_back(b);
    if (from.empty() || jumps_.labels().empty())
      return;
    auto dispatch = static_cast<uint32_t>(graph_.blocks.size());
    graph_.blocks.emplace_back();
    graph_.blocks.back().first = static_cast<uint32_t>(graph_.code.instructions.size());
    for (uint32_t b : from)
      connect(b, dispatch);
    for (uint64_t label : jumps_.labels())
      connect(dispatch, label);
  }

  const IndirectJump *jump_of(uint32_t block) const {
    const Instruction &last = graph_.last_of(graph_.blocks[block]);
    if (last.flow != Flow::indirect_jump)
      return nullptr;
    auto found = jumps_.jumps.find(last.address);
    return found == jumps_.jumps.end() ? nullptr : &found->second;
  }

  // Code that no way leads to may be entered by whoever has its address: where an instruction makes
  // that, or it stands in data. In files that are not position independent such a word may be any
  // number; but where nothing says for sure where a function ends, also one that control comes to
  // by itself may be the begin of another.
  void prove_not_entered_within(bool leaves_code_over) {
    const bool is_fixed = !walk_.program.executable().position_independent();
    auto enter = [&](uint64_t address) {
      if (walk_.instruction_at(address) == CodeWalk::kNone)
        walk_.give_up(WhyNot::unreached_code, address);
    };
    // Data among code is read as instructions, so behind it none is known to begin.
    auto enter_by = [&](uint64_t made) {
      if (made % 8 == 0 || walk_.may_begin_instruction(made))
        enter(made);
    };
    for (const image::CodeRange &range : routine_.ranges) {
      const bool is_guess = range.has_guessed_end() && is_fixed;
      if (!leaves_code_over && !is_guess)
        continue;
      for (uint64_t word : behind_begin(walk_.program.executable().code_pointers(), range)) {
        if (is_fixed && word % 8 != 0)
          continue;
        if (is_guess && !walk_.begins_block(word))
          walk_.give_up(WhyNot::unreached_code, word);
        enter(word);
      }
      for (uint64_t address : behind_begin(walk_.program.taken_within(), range))
        enter_by(address);
    }
    if (leaves_code_over)
      for (uint64_t address : jumps_.made_labels())
        enter_by(address);
  }

  // Of a function that a sweep has found it is a guess where it begins.
  void prove_entered() {
    for (const image::CodeRange &range : routine_.ranges)
      if (range.found_by == image::FoundBy::sweep &&
          std::find(routine_.entries.begin(), routine_.entries.end(), range.begin) !=
              routine_.entries.end())
        walk_.give_up(WhyNot::unentered, range.begin);
  }

  void prove() {
    const std::optional<uint64_t> left_over = walk_.unreached();
    prove_entered();
    prove_not_entered_within(left_over.has_value());
    if (jumps_.jumps.empty())
      return;
    bool needs_all = false; // that all code is reached
    const bool ends_anywhere =
        std::any_of(routine_.ranges.begin(), routine_.ranges.end(),
                    [](const image::CodeRange &range) { return range.has_guessed_end(); });
    for (const auto &[address, jump] : jumps_.jumps) {
      // A table that is read as long as it leads into a function says nothing of where that ends.
      const bool is_guess = jump.kind == JumpKind::table && !jump.table.bounded && ends_anywhere;
      if (jump.kind == JumpKind::unknown || is_guess)
        walk_.give_up(WhyNot::unresolved_jump, address);
      needs_all |= jump.kind == JumpKind::table && !jump.table.bounded;
    }
    if (walk_.why_not != WhyNot::understood)
      return;
    if (std::any_of(jumps_.jumps.begin(), jumps_.jumps.end(),
                    [](const auto &each) { return each.second.kind == JumpKind::pointer; })) {
      walk_.drop_code(); // the graph has it
      needs_all |= prove_tail_jumps();
    }
    if (needs_all && left_over)
      walk_.give_up(WhyNot::unreached_code, *left_over);
  }

  // Whether all code must be reached because of one.
  bool prove_tail_jumps() {
    bool needs_all = false;
    for (const Exit &exit : exits_of(graph_)) {
      const auto *jump = exit.flow == Flow::indirect_jump ? jump_of(exit.block) : nullptr;
      if (!jump || jump->kind != JumpKind::pointer)
        continue;
      uint64_t address = graph_.last_of(graph_.blocks[exit.block]).address;
      // The first stub of a PLT pushes an argument for the loader's resolver.
      bool is_stub = routine_.ranges.front().found_by == image::FoundBy::plt;
      bool may_leave = (exit.stack_is_back && exit.saved == 0) || is_stub ||
                       // The labels that it may go to as well make it so.
                       exit.stack_is_unknown;
      // A label is no argument: its caller would have had to be told of it.
      bool may_stay = !jumps_.labels().empty() && exit.jumps_to.kind != Origin::entry;
      if (!exit.jumps_to.is_plain() || (!may_leave && !may_stay)) {
        walk_.give_up(WhyNot::unresolved_jump, address);
        return false;
      }
      if (may_leave) {
        auto &tails = graph_.tail_jumps;
        tails.insert(std::upper_bound(tails.begin(), tails.end(), address), address);
        needs_all |= !is_through_constant_slot(exit.block);
      }
    }
    return needs_all;
  }

  // jmp [rip + slot], as in stubs: where it goes stands in one place.
  bool is_through_constant_slot(uint32_t block) const {
    const Instruction &last = graph_.last_of(graph_.blocks[block]);
    for (const assay_uop &uop : graph_.code.uops_of(last))
      if (uop.op == ASSAY_UOP_load)
        return uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO;
    return false;
  }

  void append(Instruction instruction) {
    auto uop = static_cast<uint32_t>(graph_.code.uops.size());
    auto access = static_cast<uint32_t>(graph_.code.accesses.size());
    for (Access each : walk_.code.accesses_of(instruction)) {
      if (each.has_address())
        each.uop = each.uop - instruction.uop + uop;
      graph_.code.accesses.push_back(each);
    }
    auto uops = walk_.code.uops_of(instruction);
    graph_.code.uops.insert(graph_.code.uops.end(), uops.begin(), uops.end());
    instruction.uop = uop;
    instruction.access = access;
    if (instruction.opaque) {
      graph_.code.touched.push_back(walk_.code.touched_by(instruction));
      instruction.operand = static_cast<uint32_t>(graph_.code.touched.size() - 1);
    }
    graph_.code.instructions.push_back(instruction);
  }

  const Routine &routine_;
  CodeWalk walk_;
  IndirectJumps jumps_;
  FlowGraph graph_;
  bool has_read_too_far_ = false;
  std::vector<uint64_t> leaders_; // of blocks, but for the dispatch; sorted
  std::vector<uint32_t> last_of_; // by block, in the walk's code
};

} // namespace

const char *why_not_name(WhyNot why) {
  switch (why) {
  case WhyNot::understood: return "understood";
  case WhyNot::undecodable: return "undecodable";
  case WhyNot::leaves_code: return "leaves_code";
  case WhyNot::unresolved_jump: return "unresolved_jump";
  case WhyNot::unreached_code: return "unreached_code";
  case WhyNot::unentered: return "unentered";
  case WhyNot::half_known: return "half_known";
  case WhyNot::too_large: return "too_large";
  }
  return "";
}

const char *why_not_meaning(WhyNot why) {
  switch (why) {
  case WhyNot::understood: return "its control flow is known";
  case WhyNot::undecodable: return "control reaches bytes that are no instruction";
  case WhyNot::leaves_code: return "control runs off the end of the function";
  case WhyNot::unresolved_jump: return "an indirect jump goes where no table says";
  case WhyNot::unreached_code:
    return "no way leads to some of its code, but a jump or whoever has its address could";
  case WhyNot::unentered: return "nothing known leads to it: where it begins is a guess";
  case WhyNot::half_known:
    return "where an instruction goes, or what it accesses, is known in part only";
  case WhyNot::too_large: return "it has more instructions than are looked at";
  }
  return "";
}

FlowGraph flow_graph(const Program &program, const Routine &routine, Decoder &decoder,
                     Calls calls) {
  // A table without a bound ends where the next one begins, which may be found later: then all of it
  // is done again, with what is known now.
  constexpr int kMaxRounds = 4;
  std::set<uint64_t> tables;
  for (int round = 1;; round++) {
    Builder builder(program, routine, decoder, calls, tables);
    FlowGraph graph = builder.build();
    if (round == kMaxRounds || !builder.has_read_too_far() || builder.tables() == tables)
      return graph;
    tables = builder.tables();
  }
}

} // namespace binary
