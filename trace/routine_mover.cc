// A routine is moved block by block in the order of its addresses, so that most blocks still run on
// into the next one. At the beginning of functions, of loops, of landing pads, and where functions
// return, a check makes room in the buffer (abi/trace_ring.h): no way through the code logs more
// between two checks than the slack that buffers have.

#include "trace/routine_mover.h"

#include "binary/effects.h"
#include "binary/liveness.h"
#include "trace/dead_bytes.h"
#include "trace/log_snippets.h"
#include "trace/position_registers.h"
#include "trace/routine_log.h"
#include "trace/system_calls.h"

#include <algorithm>
#include <bit>
#include <map>

namespace trace {
namespace {

using binary::Access;
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
      : module_(module), code_(module.code), routine_(routine), graph_(graph), function_(function),
        liveness_(graph, module.r11.known(routine.address())), snippets_(module, graph),
        block_at_(graph.blocks.size(), kNowhere) {
    order_blocks();
  }

  void move() {
    log_ = log_of_routine(module_, graph_, function_);
    choose_holders();
    code_.align(kAlignment, 0xcc);
    for (size_t i = 0; i < order_.size(); i++)
      block(i);
    end_ = code_.size();
    arrivals();
    edges();
    snippets_.slow_paths([&](uint64_t address) { side(address); });
    sides_end_ = code_.size();
    settle();
  }

  // Whether its entries and targets can be overwritten, and with which jumps: `to` of those of 5
  // bytes is the number of the site.
  bool find_room(std::vector<uint64_t> &sites, std::vector<AssayMovedJump> &jumps) {
    for (uint64_t entry : routine_.entries)
      sites.push_back(entry);
    for (const binary::JumpTable &table : graph_.tables)
      sites.insert(sites.end(), table.targets.begin(), table.targets.end());
    for (const Block &block : graph_.blocks)
      if (block.is_dispatch())
        for (uint32_t label : block.successors)
          sites.push_back(graph_.instructions_of(graph_.blocks[label]).front().address);
    std::sort(sites.begin(), sites.end());
    sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
    std::vector<std::pair<uint64_t, uint32_t>> numbered;
    for (uint32_t i = 0; i < sites.size(); i++) {
      if (!block_of_.contains(sites[i]))
        return false;
      numbered.emplace_back(sites[i], i);
    }
    return DeadBytes(module_.program.executable(), module_.decoder, routine_, graph_)
        .place(numbered, jumps);
  }

  uint32_t moved_block(uint64_t address) const {
    auto at = block_of_.find(address);
    return at == block_of_.end() ? kNowhere : block_at_[at->second];
  }

  // Where tables and labels that name the address lead to.
  uint32_t arrival(uint64_t address) const {
    auto at = arrival_at_.find(address);
    return at == arrival_at_.end() ? moved_block(address) : at->second;
  }

  // Writes the unwind entry again for the part of it that is [begin, end), and for what lies beside its instructions.
  void cover(const image::UnwindRange &frame, uint64_t begin, uint64_t end) {
    cover(frame, begin, end, moved_, end_);
    for (size_t i = 0; i < sides_.size();) {
      size_t next = i + 1;
      while (next < sides_.size() && sides_[next].first >= sides_[next - 1].first)
        next++;
      cover(frame, begin, end, std::span(sides_).subspan(i, next - i),
            next < sides_.size() ? sides_[next].second : sides_end_);
      i = next;
    }
  }

private:
  // Addresses of the original in ascending order, each with where its code lies, up to `all_end`.
  using Places = std::span<const std::pair<uint64_t, uint32_t>>;
  void cover(const image::UnwindRange &frame, uint64_t begin, uint64_t end, Places places,
             uint32_t all_end) {
    auto place = [&](uint64_t address) {
      auto at =
          std::lower_bound(places.begin(), places.end(), address,
                           [](const auto &each, uint64_t wanted) { return each.first < wanted; });
      return at == places.end() ? all_end : at->second;
    };
    const uint32_t from = place(begin), to = place(end);
    if (from < to)
      module_.unwind.add(
          frame, from, to, [&](uint64_t address) { return place(std::max(address, begin)); },
          [&](uint64_t address) { return moved_block(address); });
  }

  struct Edge { // a branch to where the position has gone on, or is in another register
    uint64_t address;
    uint32_t at; // its distance stands there
    std::optional<Gpr> holder;
    LogSnippets::Pending pending;
    uint64_t target;
  };
  void order_blocks() {
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (!graph_.blocks[b].is_dispatch()) {
        order_.push_back(b);
        block_of_[address_of(b)] = b;
      }
    std::sort(order_.begin(), order_.end(),
              [&](uint32_t a, uint32_t b) { return address_of(a) < address_of(b); });
    place_.assign(graph_.blocks.size(), 0);
    for (size_t i = 0; i < order_.size(); i++)
      place_[order_[i]] = i;
  }

  uint64_t address_of(uint32_t block) const {
    return graph_.instructions_of(graph_.blocks[block]).front().address;
  }

  // The register that holds the position of the groups' log where a block begins.
  void choose_holders() {
    entry_holder_.resize(graph_.blocks.size());
    entry_pending_.resize(graph_.blocks.size());
    is_back_target_.assign(graph_.blocks.size(), false);
    for (uint32_t b : order_)
      for (uint32_t from : graph_.blocks[b].predecessors)
        if (!graph_.blocks[from].is_dispatch() && place_[from] >= place_[b])
          is_back_target_[b] = true;
    if (!(module_.log & ASSAY_LOG_groups))
      return;
    std::vector<RegisterSet> logged(graph_.blocks.size(), 0);
    for (uint32_t b : order_)
      logged[b] = log_.registers_in(b);
    const auto registers = position_registers(graph_, liveness_, order_, logged);
    choose_dispatch_holder(logged);
    std::vector<HolderWish> wanted(graph_.blocks.size(), HolderWish::none);
    for (uint32_t b : order_) {
      if (!is_entered_by_edges(b))
        continue;
      entry_holder_[b] = registers[b];
      wanted[b] = wish_of(b);
    }
    add_registers_at_entries(graph_, liveness_, logged, wanted, dispatch_holder_, entry_holder_);
  }

  HolderWish wish_of(uint32_t b) const {
    const binary::NodeList &from = graph_.blocks[b].predecessors;
    if (from.size() == 1 && !graph_.blocks[from.front()].is_dispatch() &&
        is_followed_alone(from.front(), b)) // begins with what holds it there
      return HolderWish::none;
    if (log_.logs(b))
      return HolderWish::for_what_it_logs;
    const bool leads_to_logs = std::ranges::any_of(graph_.blocks[b].successors,
                                                   [&](uint32_t to) { return log_.logs(to); });
    return leads_to_logs ? HolderWish::to_pass_on : HolderWish::none;
  }

  // A register that holds nothing wherever the routine's indirect jumps arrive, and which none of them reads.
  void choose_dispatch_holder(const std::vector<RegisterSet> &logged) {
    if (!log_.plan)
      return;
    RegisterSet busy = kFrameRegisters;
    bool any = false;
    for (uint32_t b : order_) {
      if (log_.plan->arrivals[b]) {
        any = true;
        busy = static_cast<RegisterSet>(busy | liveness_.at(b) | logged[b]);
      }
      if (const Instruction &last = graph_.last_of(graph_.blocks[b]);
          last.flow == Flow::indirect_jump)
        busy = static_cast<RegisterSet>(busy | binary::effects_of(graph_.code, last).reads);
    }
    if (const auto free = static_cast<RegisterSet>(~busy); any && free)
      dispatch_holder_ = static_cast<Gpr>(std::countr_zero(free));
  }

  // Whether the jump arrives at blocks of this routine, all of which log where.
  bool is_dispatched(const Instruction &jump) const {
    return jump.flow == Flow::indirect_jump && dispatch_holder_ && !graph_.is_tail_jump(jump);
  }

  // Whether control comes there by jumps of the routine alone, which leave the position where it is expected.
  bool is_entered_by_edges(uint32_t b) const {
    if (std::find(graph_.entries.begin(), graph_.entries.end(), b) != graph_.entries.end())
      return false;
    if (log_.plan && log_.plan->begins_with_start[b])
      return false;
    if (!log_.groups[b][0].empty() && log_.groups[b][0].front().loop)
      return false;
    const bool has_arrival = log_.plan && log_.plan->arrivals[b];
    for (uint32_t from : graph_.blocks[b].predecessors) {
      if (graph_.blocks[from].is_dispatch()) {
        if (!has_arrival)
          return false;
        continue;
      }
      const Instruction &last = graph_.last_of(graph_.blocks[from]);
      if (last.is_call() || (last.flow == Flow::indirect_jump && !has_arrival))
        return false;
    }
    return true;
  }

  // Puts the position where the block that begins there expects it.
  void hold_for(uint64_t address) {
    if (const auto at = block_of_.find(address); at != block_of_.end())
      snippets_.hold(entry_holder_[at->second]);
  }

  // What follows belongs to the instruction at the address.
  void side(uint64_t address) { sides_.emplace_back(address, code_.size()); }

  // Behind the routine: branches that find the position elsewhere than where they lead to expects it.
  void edges() {
    for (const Edge &edge : edges_) {
      const uint32_t to = block_of_.at(edge.target);
      side(edge.address);
      code_.land(edge.at, code_.size());
      snippets_.begin_block(edge.holder, edge.pending);
      snippets_.settle(liveness_.at(to) | log_.registers_in(to), graph_.blocks[to],
                       graph_.blocks[to].first);
      snippets_.hold(entry_holder_[to]);
      references_.push_back({code_.jump(), edge.target});
    }
  }

  // The actions of a block, by the instruction before which they stand.
  std::multimap<uint32_t, LogAction> actions_of(uint32_t block) {
    std::multimap<uint32_t, LogAction> actions;
    for (uint32_t log = 0; log < kLogs; log++)
      for (Group &group : log_.groups[block][log]) {
        auto &all = log == 0 ? module_.groups : module_.singles;
        const auto number = static_cast<uint32_t>(all.size());
        for (uint32_t v = 0; v < group.values.size();) {
          uint32_t end = v;
          while (end < group.values.size() && group.values[end].before == group.values[v].before)
            end++;
          actions.emplace(group.values[v].before,
                          LogAction{log, &group, v, end - v, end == group.values.size(), number});
          v = end;
        }
        if (group.values.empty())
          actions.emplace(group.commit, LogAction{log, &group, 0, 0, true, number});
        all.push_back(group);
      }
    return actions;
  }

  // By place in the block: registers that are logged there or later. What is logged of one that the
  // program has no more use for must still be in it.
  std::vector<RegisterSet>
  logged_later_in(uint32_t b, const std::multimap<uint32_t, LogAction> &actions) const {
    const Block &block = graph_.blocks[b];
    std::vector<RegisterSet> logged_later(block.count + 2, 0);
    for (const auto &[index, action] : actions)
      for (uint32_t v = action.first_value; v < action.first_value + action.values; v++)
        if (const GroupValue &value = action.group->values[v]; value.access == Access::kNoAddress)
          logged_later[index - block.first] |= binary::register_bit(value.reg);
    if (log_.plan)
      for (const PlanStretch &stretch : log_.plan->stretches[b])
        for (const PlanPoint &point : stretch.points)
          logged_later[point.before - block.first] |= point.logged_register();
    for (uint32_t i = block.count + 1; i-- > 0;)
      logged_later[i] |= logged_later[i + 1];
    return logged_later;
  }

  void block(size_t place) {
    const uint32_t b = order_[place];
    const Block &block = graph_.blocks[b];
    const std::vector<VariableSet> live = liveness_.along(b);
    const auto actions = actions_of(b);
    const std::vector<RegisterSet> logged_later = logged_later_in(b, actions);
    const bool carries = carries_on(b);
    const std::vector<std::array<bool, kLogs>> settles = settled_at(b, actions, carries);
    snippets_.begin_block(entry_holder_[b], entry_pending_[b]);
    if (is_back_target_[b])
      align_like(address_of(b));
    block_at_[b] = code_.size();
    if (!is_entered_by_edges(b) && (log_.checked[b] || log_.logs(b)))
      expect_position(address_of(b), live[0] | logged_later[0]);
    const uint32_t slot = log_.plan && !log_.plan->begins_with_start[b]
                              ? ASSAY_MOVED_SLOT_check_inside
                              : ASSAY_MOVED_SLOT_check;
    if (log_.checked[b] && log_.only_behind[b])
      snippets_.check(block, block.first, live[0] | logged_later[0], slot);
    if (log_.plan && log_.only_behind[b]) {
      loop_begin_ = code_.size();
      loop_address_ = address_of(b);
    } else if (!log_.groups[b][0].empty() && log_.groups[b][0].front().loop) {
      snippets_.save_counter(log_.groups[b][0].front().values[0].reg);
      loop_begin_ = code_.size();
      loop_address_ = address_of(b);
    } else {
      loop_begin_.reset();
    }
    if (log_.checked[b] && !log_.only_behind[b])
      snippets_.check(block, block.first, live[0] | logged_later[0], slot);
    for (uint32_t i = 0; i <= block.count; i++) {
      const uint32_t index = block.first + i;
      const bool is_behind = i == block.count;
      if (!is_behind) // exceptions and the rules of unwinding: an instruction begins with its snippets
        moved_.emplace_back(graph_.code.instructions[index].address,
                            i == 0 ? block_at_[b] : code_.size());
      if (i > 0 && i < block.count && may_begin_thread(index - 1))
        snippets_.check(block, index, live[i] | logged_later[i], ASSAY_MOVED_SLOT_check);
      if (i > 0 && i < block.count && graph_.code.instructions[index - 1].is_call() && log_.logs(b))
        expect_position(graph_.code.instructions[index].address, live[i] | logged_later[i]);
      if (log_.plan)
        for (const PlanStretch &stretch : log_.plan->stretches[b])
          snippets_.log_points(stretch, log_.first_start, live[i] | logged_later[i], block, index,
                               settles[i][0]);
      auto [from, to] = actions.equal_range(index);
      for (auto at = from; at != to; ++at)
        snippets_.log(at->second, live[i] | logged_later[i], block, index,
                      settles[i][at->second.log]);
      if (ends_at(b, i) ? !carries : leaves(index))
        snippets_.settle(live[i] | logged_later[i], block, index);
      if (ends_at(b, i))
        pass_pending(b);
      if (is_behind)
        break;
      pass_holder(b, index);
      leave_position(graph_.code.instructions[index], live[i] | logged_later[i]);
      const bool may_begin = may_begin_thread(index);
      if (may_begin && sets_handler(module_.program, graph_, block, index))
        snippets_.act();
      else {
        if (may_begin && may_forbid_calls(module_.program, graph_, block, index))
          snippets_.before_call();
        instruction(graph_.code.instructions[index]);
      }
      if (may_begin && may_return_twice(module_.program, graph_, block, index))
        snippets_.begun(live[i + 1] | logged_later[i + 1], graph_.code.instructions[index].address);
    }
    run_on(place);
  }

  // Whether other code may be executed before what follows the instruction.
  bool leaves(uint32_t index) const {
    const Instruction &instruction = graph_.code.instructions[index];
    const Flow flow = instruction.flow;
    return instruction.is_call() || binary::may_leave(graph_.code, instruction) ||
           (flow != Flow::next && flow != Flow::jump && flow != Flow::branch);
  }
  // Whether control goes on from there: before a jump, or behind the last instruction.
  bool ends_at(uint32_t b, uint32_t place) const {
    const Block &block = graph_.blocks[b];
    return place == block.count ||
           (place + 1 == block.count && graph_.last_of(block).flow != Flow::next);
  }

  // Whether the position need not go on where the block ends: what follows logs on from there, or
  // does so alone, or is branched to.
  bool carries_on(uint32_t b) const {
    const Block &block = graph_.blocks[b];
    const Instruction &last = graph_.last_of(block);
    if (leaves(block.first + block.count - 1) || block.leaves != Block::kStays ||
        block.runs_on != Block::kStays || log_.only_behind[b])
      return false;
    bool any = false;
    for (uint32_t next : block.successors) {
      if (is_followed_alone(b, next))
        any |= !log_.checked[next] && log_.logs(next);
      else if (last.flow != Flow::branch || graph_.blocks[next].is_dispatch() ||
               address_of(next) != last.target() || place_[next] <= place_[b])
        return false;
    }
    return any;
  }

  // By place in the block and log: what is complete there is followed by nothing more before the position must go on.
  std::vector<std::array<bool, kLogs>>
  settled_at(uint32_t b, const std::multimap<uint32_t, LogAction> &actions, bool carries) const {
    const Block &block = graph_.blocks[b];
    std::vector<std::array<bool, kLogs>> is_logged(block.count + 1), settles(block.count + 1);
    for (const auto &[index, action] : actions)
      is_logged[index - block.first][action.log] = true;
    if (log_.plan)
      for (const PlanStretch &stretch : log_.plan->stretches[b])
        for (const PlanPoint &point : stretch.points)
          is_logged[point.before - block.first][0] = true;
    for (uint32_t log = 0; log < kLogs; log++)
      for (uint32_t i = block.count + 1; i-- > 0;) {
        if (ends_at(b, i))
          settles[i][log] = !carries;
        else
          settles[i][log] =
              leaves(block.first + i) || (!is_logged[i + 1][log] && settles[i + 1][log]);
      }
    return settles;
  }

  // Behind it may be another thread, which has logged nothing yet.
  bool may_begin_thread(uint32_t index) const {
    return module_.settings.log != ASSAY_LOG_nothing &&
           binary::may_leave(graph_.code, graph_.code.instructions[index]);
  }

  // Blocks that only this one leads to begin with what is pending where it ends.
  void pass_pending(uint32_t b) {
    for (uint32_t next : graph_.blocks[b].successors)
      if (is_followed_alone(b, next))
        entry_pending_[next] = snippets_.pending();
  }
  // Callers leave the position in a register for callees, and callees for callers, also those of
  // other files: whoever logs compares.
  void leave_position(const Instruction &instruction, VariableSet live) {
    const Flow flow = instruction.flow;
    const bool leaves = instruction.is_call() || flow == Flow::ret ||
                        (flow == Flow::jump && !block_of_.contains(instruction.target())) ||
                        (flow == Flow::indirect_jump && !is_dispatched(instruction));
    const uint64_t reads = binary::effects_of(graph_.code, instruction).reads;
    if (leaves && snippets_.holder() && !((live | reads) & binary::register_bit(kBetween)))
      snippets_.hold(kBetween);
  }
  void expect_position(uint64_t address, VariableSet live) {
    constexpr VariableSet kUsed = binary::register_bit(kBetween) | binary::bit(binary::kFlags);
    if (module_.log & ASSAY_LOG_groups && !snippets_.holder() && !(live & kUsed))
      snippets_.expect(address);
  }
  // What holds the position where a block ends goes on to hold it there.
  void pass_holder(uint32_t b, uint32_t index) {
    const Block &block = graph_.blocks[b];
    if (index != block.first + block.count - 1 || !snippets_.holder())
      return;
    const RegisterSet holder = binary::register_bit(*snippets_.holder());
    if (binary::effects_of(graph_.code, graph_.last_of(block)).writes & holder)
      return;
    for (uint32_t next : block.successors)
      if (!entry_holder_[next] && is_followed_alone(b, next) && !(log_.registers_in(next) & holder))
        entry_holder_[next] = snippets_.holder();
  }
  // Whether the block `next` is moved later, and only `block` leads to it.
  bool is_followed_alone(uint32_t block, uint32_t next) const {
    return !graph_.blocks[next].is_dispatch() && graph_.blocks[next].predecessors.size() == 1 &&
           place_[next] > place_[block] && is_entered_by_edges(next) &&
           !(log_.plan && log_.plan->arrivals[next]);
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
  void run_on(size_t place) {
    const Instruction &last = graph_.last_of(graph_.blocks[order_[place]]);
    if (last.flow != Flow::next && last.flow != Flow::branch && !last.is_call())
      return;
    hold_for(last.end());
    if (place + 1 < order_.size() && address_of(order_[place + 1]) == last.end())
      return;
    refer(code_.jump(), last.end());
  }

  // Behind the routine: what is logged where an indirect jump arrives, before it goes on.
  void arrivals() {
    if (!log_.plan)
      return;
    for (uint32_t b : order_) {
      if (!log_.plan->arrivals[b])
        continue;
      side(address_of(b));
      arrival_at_[address_of(b)] = code_.size();
      snippets_.begin_block(dispatch_holder_, {});
      snippets_.hold(entry_holder_[b]);
      snippets_.log_arrival(*log_.plan->arrivals[b], liveness_.at(b) | log_.registers_in(b),
                            graph_.blocks[b]);
      references_.push_back({code_.jump(), address_of(b)});
    }
  }

  // The distance at `at` leads to a linked address.
  void refer(uint32_t at, uint64_t target) {
    if (block_of_.contains(target))
      references_.push_back({at, target});
    else
      module_.references.push_back({at, target});
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
      if (is_dispatched(instruction))
        snippets_.hold(dispatch_holder_);
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

  // The same, of a branch that may be that of a loop of one block.
  void refer_back(uint32_t at, uint64_t target) {
    if (loop_begin_ && target == loop_address_) {
      code_.land(at, *loop_begin_);
      return;
    }
    const auto to = block_of_.find(target);
    if (to == block_of_.end()) {
      refer(at, target);
      return;
    }
    const auto wanted = entry_holder_[to->second];
    const bool settles = snippets_.pending() != LogSnippets::Pending{} &&
                         entry_pending_[to->second] != snippets_.pending();
    if (settles || (wanted && wanted != snippets_.holder()))
      edges_.push_back({moved_.back().first, at, snippets_.holder(),
                        settles ? snippets_.pending() : LogSnippets::Pending{}, target});
    else
      refer(at, target);
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
  MovedFunction &function_;
  const binary::Liveness liveness_;
  LogSnippets snippets_;
  std::vector<uint32_t> order_;                     // blocks by address
  std::unordered_map<uint64_t, uint32_t> block_of_; // by address
  std::vector<uint32_t> block_at_;                  // where blocks lie now
  RoutineLog log_;
  std::vector<std::pair<uint64_t, uint32_t>> moved_; // instructions, by address
  std::vector<ModuleCode::Reference> references_;    // to its own blocks
  std::vector<Edge> edges_;
  std::vector<std::optional<Gpr>>
      entry_holder_;                   // by block: holds the position of log 0 where it begins
  std::optional<Gpr> dispatch_holder_; // the same where indirect jumps arrive
  std::vector<LogSnippets::Pending> entry_pending_; // by block: what it begins with
  std::vector<size_t> place_;                       // by block: in the order
  std::vector<bool> is_back_target_;                // by block: a jump back leads there
  std::optional<uint32_t> loop_begin_; // of a loop of one block: behind what is done before it
  uint64_t loop_address_ = 0;
  std::unordered_map<uint64_t, uint32_t> arrival_at_; // by address
  uint32_t end_ = 0; // of the instructions; what is beside them follows
  std::vector<std::pair<uint64_t, uint32_t>>
      sides_; // by where they lie; the instruction whose rules of unwinding hold there
  uint32_t sides_end_ = 0;
};

} // namespace

WhyUnmoved move_routine(ModuleCode &module, const Routine &routine, const FlowGraph &graph,
                        const std::vector<const image::UnwindRange *> &frames,
                        MovedFunction &function) {
  RoutineMover mover(module, routine, graph, function);
  std::vector<uint64_t> sites;
  std::vector<AssayMovedJump> jumps;
  if (!mover.find_room(sites, jumps))
    return WhyUnmoved::no_room;
  mover.move();
  for (AssayMovedJump &jump : jumps)
    if (jump.bytes == 5)
      jump.to = mover.arrival(sites[jump.to]);
  module.jumps.insert(module.jumps.end(), jumps.begin(), jumps.end());
  for (const image::UnwindRange *frame : frames)
    for (const image::CodeRange &range : routine.ranges) {
      const uint64_t begin = std::max(frame->begin, range.begin),
                     end = std::min(frame->end, range.end);
      if (begin < end)
        mover.cover(*frame, begin, end);
    }
  return WhyUnmoved::moved;
}

} // namespace trace
