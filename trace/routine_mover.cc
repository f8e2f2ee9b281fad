// A routine is moved block by block in the order of its addresses, so that most blocks still run on
// into the next one. At the beginning of functions, of loops, of landing pads, and where functions
// return, a check makes room in the buffer (abi/trace_ring.h): no way through the code logs more
// between two checks than the slack that buffers have.
//
// Here the code is put together, instruction by instruction. Beside it: what a block logs
// (block_log.cc), where the position in the buffer is meanwhile (position_flow.cc), the snippets
// themselves (log_snippets.cc), where all came to lie (moved_places.cc), and what overwrites the
// original (original_jumps.cc).

#include "trace/routine_mover.h"

#include "binary/effects.h"
#include "binary/liveness.h"
#include "trace/block_log.h"
#include "trace/block_order.h"
#include "trace/log_snippets.h"
#include "trace/moved_places.h"
#include "trace/position_flow.h"
#include "trace/position_registers.h"
#include "trace/routine_log.h"
#include "trace/system_calls.h"

#include <algorithm>

namespace trace {
namespace {

using binary::Block;
using binary::Flow;
using binary::FlowGraph;
using binary::Instruction;
using binary::RegisterSet;
using binary::Routine;
using binary::VariableSet;

constexpr uint32_t kNowhere = UINT32_MAX;
constexpr uint32_t kAlignment = 32; // what compilers align loops to, at most

class RoutineMover {
public:
  RoutineMover(ModuleCode &module, const Routine &routine, const FlowGraph &graph,
               MovedFunction &function)
      : module_(module), code_(module.code), routine_(routine), graph_(graph), order_(graph),
        liveness_(graph, module.r11.known(routine.address())),
        log_(log_of_routine(module, graph, function)),
        flow_(module, graph, order_, liveness_, log_), snippets_(module, graph),
        moved_block_(graph.blocks.size(), kNowhere) {}

  void move() {
    code_.align(kAlignment, 0xcc);
    for (uint32_t b : order_.blocks())
      block(b);
    places_.end(code_.size());
    arrivals();
    edges();
    snippets_.slow_paths([&](uint64_t address) { side(address); });
    places_.end_sides(code_.size());
    settle();
  }

  // Where tables and labels that name the address lead to.
  uint32_t arrival(uint64_t address) const {
    auto at = arrival_at_.find(address);
    return at == arrival_at_.end() ? moved_block(address) : at->second;
  }

  // Writes the unwind entry again for the part of it that is [begin, end).
  void cover(const image::UnwindRange &frame, uint64_t begin, uint64_t end) {
    places_.cover(module_.unwind, frame, begin, end,
                  [&](uint64_t address) { return moved_block(address); });
  }

private:
  struct Edge { // a branch to where the position has gone on, or is in another register
    uint64_t address;
    uint32_t at; // its distance stands there
    std::optional<Gpr> holder;
    LogSnippets::Pending pending;
    uint64_t target;
  };

  // While a block is moved.
  struct Moving {
    uint32_t number;
    const Block &block;
    const BlockLog log;
    const std::vector<VariableSet> needed; // by place: what the program, or what is logged, needs
    const bool carries;                    // the position need not go on where it ends

    uint32_t index(uint32_t place) const { return block.first + place; }
    bool is_within(uint32_t place) const { return place > 0 && place < block.count; }
  };

  uint32_t moved_block(uint64_t address) const {
    const auto block = order_.block_at(address);
    return block ? moved_block_[*block] : kNowhere;
  }

  void block(uint32_t b) {
    const bool carries = flow_.carries_on(b);
    BlockLog log = log_of_block(module_, graph_, log_, b, carries);
    std::vector<VariableSet> needed = liveness_.along(b);
    for (size_t place = 0; place < needed.size(); place++)
      needed[place] |= log.logged_later[place];
    const Moving moving{b, graph_.blocks[b], std::move(log), std::move(needed), carries};
    begin_block(moving);
    for (uint32_t place = 0; place < moving.block.count; place++) {
      // Exceptions and the rules of unwinding: an instruction begins with its snippets.
      const Instruction &instruction = graph_.code.instructions[moving.index(place)];
      places_.add(instruction.address, place == 0 ? moved_block_[b] : code_.size());
      before(moving, place);
      pass(moving, place);
    }
    before(moving, moving.block.count);
    run_on(b);
  }

  // Where the block begins: the position, and room in the buffer.
  void begin_block(const Moving &moving) {
    const auto &[b, block, log, needed, carries] = moving;
    const uint64_t address = order_.address_of(b);
    snippets_.begin_block(flow_.holder_at(b), flow_.pending_at(b));
    if (order_.is_back_target(b))
      align_like(address);
    moved_block_[b] = code_.size();
    if (!flow_.is_entered_by_edges(b) && (log_.checked[b] || log_.logs(b)))
      expect_position(address, needed[0]);
    const uint32_t slot = log_.plan && !log_.plan->begins_with_start[b]
                              ? ASSAY_MOVED_SLOT_check_inside
                              : ASSAY_MOVED_SLOT_check;
    if (log_.checked[b] && log_.only_behind[b])
      snippets_.check(block, block.first, needed[0], slot);
    loop_begin_.reset();
    if (log_.plan && log_.only_behind[b]) {
      begin_loop(address);
    } else if (const std::vector<Group> &groups = log_.groups[b][0];
               !groups.empty() && groups.front().loop) {
      snippets_.save_counter(groups.front().values[0].reg);
      begin_loop(address);
    }
    if (log_.checked[b] && !log_.only_behind[b])
      snippets_.check(block, block.first, needed[0], slot);
  }

  // Jumps to the address are the loop's own from now on, and lead here.
  void begin_loop(uint64_t address) {
    loop_begin_ = code_.size();
    loop_address_ = address;
  }

  // What is logged before the instruction of that place, or behind the last one.
  void before(const Moving &moving, uint32_t place) {
    const auto &[b, block, log, all_needed, carries] = moving;
    const uint32_t index = moving.index(place);
    const VariableSet needed = all_needed[place];
    if (moving.is_within(place) && may_begin_thread(index - 1))
      snippets_.check(block, index, needed, ASSAY_MOVED_SLOT_check);
    if (moving.is_within(place) && graph_.code.instructions[index - 1].is_call() && log_.logs(b))
      expect_position(graph_.code.instructions[index].address, needed);
    if (log_.plan)
      for (const PlanStretch &stretch : log_.plan->stretches[b])
        snippets_.log_points(stretch, log_.first_start, needed, block, index,
                             log.settles[place][0]);
    const auto [from, to] = log.actions.equal_range(index);
    for (auto at = from; at != to; ++at)
      snippets_.log(at->second, needed, block, index, log.settles[place][at->second.log]);
    const bool is_end = ends_at(graph_, block, place);
    if (is_end ? !carries : leaves(graph_, graph_.code.instructions[index]))
      snippets_.settle(needed, block, index);
    if (is_end)
      flow_.pass_pending(b, snippets_.pending());
  }

  // The instruction of that place, and what it does to the position.
  void pass(const Moving &moving, uint32_t place) {
    const Block &block = moving.block;
    const uint32_t index = moving.index(place);
    const Instruction &instruction = graph_.code.instructions[index];
    if (place + 1 == block.count && snippets_.holder())
      flow_.pass_holder(moving.number, *snippets_.holder());
    leave_position(instruction, moving.needed[place]);
    const bool may_begin = may_begin_thread(index);
    if (may_begin && sets_handler(module_.program, graph_, block, index))
      snippets_.act();
    else {
      if (may_begin && may_forbid_calls(module_.program, graph_, block, index))
        snippets_.before_call();
      this->instruction(instruction);
    }
    if (may_begin && may_return_twice(module_.program, graph_, block, index))
      snippets_.begun(moving.needed[place + 1], instruction.address);
  }

  // Behind it may be another thread, which has logged nothing yet.
  bool may_begin_thread(uint32_t index) const {
    return module_.settings.log != ASSAY_LOG_nothing &&
           binary::may_leave(graph_.code, graph_.code.instructions[index]);
  }

  // Callers leave the position in a register for callees, and callees for callers, also those of
  // other files: whoever logs compares.
  void leave_position(const Instruction &instruction, VariableSet needed) {
    const Flow flow = instruction.flow;
    const bool leaves = instruction.is_call() || flow == Flow::ret ||
                        (flow == Flow::jump && !order_.block_at(instruction.target())) ||
                        (flow == Flow::indirect_jump && !flow_.is_dispatched(instruction));
    const uint64_t reads = binary::effects_of(graph_.code, instruction).reads;
    if (leaves && snippets_.holder() && !((needed | reads) & binary::register_bit(kBetween)))
      snippets_.hold(kBetween);
  }
  void expect_position(uint64_t address, VariableSet needed) {
    constexpr VariableSet kUsed = binary::register_bit(kBetween) | binary::bit(binary::kFlags);
    if (module_.log & ASSAY_LOG_groups && !snippets_.holder() && !(needed & kUsed))
      snippets_.expect(address);
  }
  // Puts the position where the block that begins there expects it.
  void hold_for(uint64_t address) {
    if (const auto block = order_.block_at(address))
      snippets_.hold(flow_.holder_at(*block));
  }

  // As the compiler aligned it, which is done for loops.
  void align_like(uint64_t original) {
    for (uint32_t to = kAlignment; to >= 16; to /= 2)
      if (original % to == 0) {
        code_.align_by_nops(to);
        return;
      }
  }

  // What follows a block that does not end in a jump.
  void run_on(uint32_t b) {
    const Instruction &last = graph_.last_of(graph_.blocks[b]);
    if (last.flow != Flow::next && last.flow != Flow::branch && !last.is_call())
      return;
    hold_for(last.end());
    const auto next = order_.next(b);
    if (!next || order_.address_of(*next) != last.end())
      refer(code_.jump(), last.end());
  }

  // The instruction itself; where it lies matters only to jumps, calls and operands relative to rip.
  void instruction(const Instruction &instruction) {
    const auto bytes = module_.program.executable().bytes(instruction.address, instruction.length);
    const std::span<const uint8_t> raw(reinterpret_cast<const uint8_t *>(bytes.data()),
                                       bytes.size());
    if (instruction.flow == Flow::jump) {
      hold_for(instruction.target());
      refer(code_.jump(), instruction.target());
    } else if (instruction.flow == Flow::branch) {
      branch(instruction, raw);
    } else if (instruction.flow == Flow::call) {
      refer(code_.call(), instruction.target());
    } else {
      if (flow_.is_dispatched(instruction))
        snippets_.hold(flow_.dispatch_holder());
      DecodedInstruction decoded;
      module_.decoder.decode(bytes, decoded);
      const uint32_t at = code_.size();
      code_.append(raw);
      if (const auto operand = relative_operand(decoded)) {
        const uint32_t distance = at + decoded.info.raw.disp.offset;
        module_.fixups.push_back({distance, ASSAY_FIXUP_image});
        code_.put<uint32_t>(distance,
                            static_cast<uint32_t>(instruction.end() + *operand - code_.size()));
      }
    }
    const binary::Effects effects = binary::effects_of(graph_.code, instruction);
    const bool all = instruction.is_call() || binary::may_leave(graph_.code, instruction);
    snippets_.drop_holders(static_cast<RegisterSet>(effects.writes & 0xffff), all);
    if (instruction.is_call())
      module_.returns.push_back(
          {code_.size(), static_cast<uint32_t>(instruction.end() - module_.image_begin)});
  }

  void branch(const Instruction &instruction, std::span<const uint8_t> raw) {
    DecodedInstruction decoded;
    module_.decoder.decode(std::as_bytes(raw), decoded);
    const bool is_long = decoded.info.opcode_map == ZYDIS_OPCODE_MAP_0F;
    if (is_long || decoded.info.opcode >> 4 == 7) {
      refer_back(code_.jump_if(decoded.info.opcode & 15), instruction.target());
      return;
    }
    // loop, jrcxz and their kin have one byte of distance: to a jump.
    code_.append(raw.first(raw.size() - 1));
    code_.byte(2);
    code_.byte(0xeb);
    code_.byte(5);
    refer_back(code_.jump(), instruction.target());
  }

  // The distance at `at` leads to a linked address.
  void refer(uint32_t at, uint64_t target) {
    if (order_.block_at(target))
      references_.push_back({at, target});
    else
      module_.references.push_back({at, target});
  }

  // The same, of a branch that may be that of a loop of one block.
  void refer_back(uint32_t at, uint64_t target) {
    if (loop_begin_ && target == loop_address_) {
      code_.land(at, *loop_begin_);
      return;
    }
    const auto to = order_.block_at(target);
    if (!to) {
      refer(at, target);
      return;
    }
    const auto wanted = flow_.holder_at(*to);
    const bool settles = snippets_.pending() != LogSnippets::Pending{} &&
                         flow_.pending_at(*to) != snippets_.pending();
    if (settles || (wanted && wanted != snippets_.holder()))
      edges_.push_back({places_.last_address(), at, snippets_.holder(),
                        settles ? snippets_.pending() : LogSnippets::Pending{}, target});
    else
      refer(at, target);
  }

  // What follows belongs to the instruction at the address.
  void side(uint64_t address) { places_.add_side(address, code_.size()); }

  // Behind the routine: what is logged where an indirect jump arrives, before it goes on.
  void arrivals() {
    if (!log_.plan)
      return;
    for (uint32_t b : order_.blocks()) {
      if (!log_.plan->arrivals[b])
        continue;
      const uint64_t address = order_.address_of(b);
      side(address);
      arrival_at_[address] = code_.size();
      snippets_.begin_block(flow_.dispatch_holder(), {});
      snippets_.hold(flow_.holder_at(b));
      snippets_.log_arrival(*log_.plan->arrivals[b], liveness_.at(b) | log_.registers_in(b),
                            graph_.blocks[b]);
      references_.push_back({code_.jump(), address});
    }
  }

  // Behind the routine: branches that find the position elsewhere than where they lead to expects it.
  void edges() {
    for (const Edge &edge : edges_) {
      const uint32_t to = *order_.block_at(edge.target);
      side(edge.address);
      code_.land(edge.at, code_.size());
      snippets_.begin_block(edge.holder, edge.pending);
      snippets_.settle(liveness_.at(to) | log_.registers_in(to), graph_.blocks[to],
                       graph_.blocks[to].first);
      snippets_.hold(flow_.holder_at(to));
      references_.push_back({code_.jump(), edge.target});
    }
  }

  void settle() {
    for (const auto &[at, target] : references_)
      code_.land(at, moved_block(target));
    for (uint64_t entry : routine_.entries)
      module_.entries[entry] = moved_block(entry);
  }

  ModuleCode &module_;
  Assembler &code_;
  const Routine &routine_;
  const FlowGraph &graph_;
  const BlockOrder order_;
  const binary::Liveness liveness_;
  const RoutineLog log_;
  PositionFlow flow_;
  LogSnippets snippets_;
  std::vector<uint32_t> moved_block_; // by block: where it lies now
  MovedPlaces places_;
  std::vector<ModuleCode::Reference> references_; // to its own blocks
  std::vector<Edge> edges_;
  std::optional<uint32_t> loop_begin_; // of a loop of one block: behind what is done before it
  uint64_t loop_address_ = 0;
  std::unordered_map<uint64_t, uint32_t> arrival_at_; // by address
};

} // namespace

void move_routine(ModuleCode &module, const Routine &routine, const FlowGraph &graph,
                  MovabilityAnswer needs, MovedFunction &function) {
  RoutineMover mover(module, routine, graph, function);
  mover.move();
  for (AssayMovedJump &jump : needs.jumps.jumps)
    if (jump.bytes == 5)
      jump.to = mover.arrival(needs.jumps.sites[jump.to]);
  module.jumps.insert(module.jumps.end(), needs.jumps.jumps.begin(), needs.jumps.jumps.end());
  for (const image::UnwindRange *frame : needs.frames)
    for (const image::CodeRange &range : routine.ranges) {
      const uint64_t begin = std::max(frame->begin, range.begin),
                     end = std::min(frame->end, range.end);
      if (begin < end)
        mover.cover(*frame, begin, end);
    }
}

} // namespace trace
