// A routine is walked twice. First each definition becomes a node: what is read from memory, what a start finds in registers, what micro-ops
// make of others, and a join of each register at each block. The cut tells which are logged; then the same walk keeps the micro-ops that
// are left, as a skeleton. Registers are its variables, so joins need nothing.
//
// How often a block is executed is guessed: loops go round eight times, branches go either way.

#include "trace/plan.h"

#include "binary/effects.h"
#include "binary/loops.h"
#include "trace/min_cut.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

namespace trace {
namespace {

using binary::Access;
using binary::Block;
using binary::Flow;
using binary::FlowGraph;
using binary::Instruction;

constexpr unsigned kGeneral = 16;
constexpr unsigned kTracked = ASSAY_REG_TEMPORARIES + ASSAY_UOP_TEMPORARIES; // variables
constexpr size_t kMostNodes = 400'000;
constexpr size_t kMostBlocks = UINT16_MAX;

using NodeId = uint32_t;
constexpr NodeId kFree = 0;    // constants, the bias, the base of fs
constexpr NodeId kUnknown = 1; // what skeletons have no notion of: vectors, masks
constexpr NodeId kNoNode = UINT32_MAX;

struct Node {
  std::vector<NodeId> inputs;
  bool is_given = false;     // it cannot be computed
  uint8_t bytes = 8;         // that it has, zero-extended
  uint8_t reg = UINT8_MAX;   // the general register that holds it behind its instruction
  uint8_t logged_bytes = 0;  // of that register; 0: it cannot be logged
  double times = 0;          // how often it is made
  uint32_t cut = UINT32_MAX; // in the network
};

bool is_computed(const assay_uop &uop) {
  return assay_uop_is_value(uop.op) && !assay_uop_is_lane(uop.op) && !assay_uop_reads_modes(uop.op);
}

// How often each block is executed for each time the routine is.
std::vector<double> frequencies(const binary::Edges &edges, uint32_t root,
                                const binary::Loops &loops, const binary::Dominators &dominators) {
  constexpr double kRounds = 8, kMax = 1e9;
  std::vector<double> times(edges.size(), 0);
  std::vector<double> entered(loops.all.size(), 0);
  std::vector<uint32_t> exits(loops.all.size(), 0);
  for (uint32_t from : dominators.order)
    for (uint32_t to : edges[from])
      for (uint32_t l = loops.innermost[from]; l != binary::Loop::kNone && !loops.contains(l, to);
           l = loops.all[l].parent)
        exits[l]++;
  times[root] = 1;
  for (uint32_t at : dominators.order) {
    const uint32_t loop = loops.innermost[at];
    if (loop != binary::Loop::kNone && loops.all[loop].header == at) {
      entered[loop] = std::max(times[at], 1e-6);
      times[at] = std::min(entered[loop] * kRounds, kMax);
    }
    size_t staying = 0;
    for (uint32_t to : edges[at])
      staying += loop == binary::Loop::kNone || loops.contains(loop, to);
    for (uint32_t to : edges[at]) {
      const bool stays = loop == binary::Loop::kNone || loops.contains(loop, to);
      const bool is_back = dominators.number[to] <= dominators.number[at];
      if (stays && !is_back)
        times[to] += times[at] / double(staying);
      else if (!stays) {
        // Of all loops that are left, the outermost says how often.
        uint32_t left = loop;
        while (loops.all[left].parent != binary::Loop::kNone &&
               !loops.contains(loops.all[left].parent, to))
          left = loops.all[left].parent;
        times[to] += entered[left] / double(std::max(exits[left], 1u));
      }
    }
  }
  for (double &each : times)
    each = std::max(each, 1e-6);
  return times;
}

class Planner {
public:
  // `counts`: loops of one block may be counted behind them.
  Planner(const FlowGraph &graph, bool counts) : graph_(graph), counts_(counts) {}

  std::optional<RoutinePlan> plan() {
    if (graph_.blocks.empty() || graph_.blocks.size() > kMostBlocks ||
        graph_.blocks.size() * kGeneral > kMostNodes)
      return std::nullopt;
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (!graph_.blocks[b].is_dispatch())
        block_of_[graph_.instructions_of(graph_.blocks[b]).front().address] = b;
    order_blocks();
    find_starts();
    find_counted();
    number_blocks();
    nodes_.resize(2);
    nodes_[kUnknown].is_given = true;
    result_of_.assign(graph_.code.uops.size(), kNoNode);
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      begin_block(b);
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (!graph_.blocks[b].is_dispatch())
        define(b);
    if (!is_plannable_ || nodes_.size() > kMostNodes)
      return std::nullopt;
    join();
    widths();
    if (!cut())
      return std::nullopt;
    find_needed();
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (!graph_.blocks[b].is_dispatch())
        emit(b);
    plan_.skeleton.address =
        graph_.instructions_of(graph_.blocks[graph_.entries[0]]).front().address;
    return std::move(plan_);
  }

private:
  // What an access or a branch asks.
  struct Sink {
    std::array<NodeId, 3> nodes = {kFree, kFree, kFree};
    bool is_branch = false;
    uint32_t block = 0;
    uint32_t cut = UINT32_MAX;
  };

  void order_blocks() {
    edges_.resize(graph_.blocks.size() + 1);
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      edges_[b] = graph_.blocks[b].successors;
    const auto root = static_cast<uint32_t>(graph_.blocks.size());
    edges_[root] = graph_.entries;
    const binary::Dominators dominators = binary::dominators(edges_, root);
    loops_ = binary::find_loops(edges_, dominators, root);
    times_ = frequencies(edges_, root, loops_, dominators);
  }

  static bool may_not_come_back(const FlowGraph &graph, const Instruction &instruction) {
    return instruction.opaque && graph.code.accesses_of(instruction).empty() &&
           instruction.writes & binary::bit(binary::kMemory);
  }

  void find_starts() {
    const size_t count = graph_.blocks.size();
    is_start_.assign(count, false);
    std::vector<bool> is_target(count, false); // of indirect jumps
    bool can_choose = true;
    for (uint32_t entry : graph_.entries)
      is_start_[entry] = true;
    for (uint32_t b = 0; b < count; b++) {
      const Block &block = graph_.blocks[b];
      if (block.is_dispatch()) {
        for (uint32_t to : block.successors)
          is_target[to] = true;
        continue;
      }
      if (may_not_come_back(graph_, graph_.instructions_of(block).front()))
        is_start_[b] = true;
      const Instruction &last = graph_.last_of(block);
      if (last.is_call() || may_not_come_back(graph_, last))
        for (uint32_t to : block.successors)
          is_start_[to] = true;
      if (last.flow == Flow::indirect_jump)
        for (uint32_t to : block.successors)
          if (!graph_.blocks[to].is_dispatch())
            is_target[to] = true;
    }
    for (uint32_t b = 0; b < count; b++)
      if (is_target[b] && is_start_[b])
        can_choose = false;
    plan_.arrivals.resize(count);
    for (uint32_t b = 0; b < count; b++) {
      if (!is_target[b])
        continue;
      if (can_choose) {
        plan_.arrivals[b] = static_cast<uint16_t>(targets_.size());
        targets_.push_back(b);
      } else {
        is_start_[b] = true;
      }
    }
    // A loop that nothing ends but a signal would never end in the skeleton.
    for (const binary::Loop &loop : loops_.all)
      if (!can_end(loop) && loop.header < count && !graph_.blocks[loop.header].is_dispatch())
        is_start_[loop.header] = true;
    plan_.begins_with_start = is_start_;
  }

  bool can_end(const binary::Loop &loop) const {
    const auto number = static_cast<uint32_t>(&loop - loops_.all.data());
    for (uint32_t b = 0; b < graph_.blocks.size(); b++) {
      if (!loops_.contains(number, b))
        continue;
      const Block &block = graph_.blocks[b];
      for (uint32_t to : block.successors)
        if (!loops_.contains(number, to))
          return true;
      if (block.is_dispatch() || is_start_[b])
        return true;
      if (block.leaves != Block::kStays)
        return true;
      for (const Instruction &each : graph_.instructions_of(block))
        if (each.is_call() || may_not_come_back(graph_, each))
          return true;
    }
    return false;
  }

  // Loops of one block that are left where they run on, and in which a register goes up or down by the same in each iteration: if what ends them cannot
  // be computed, that register behind them says how often they went round.
  void find_counted() {
    counter_of_.assign(graph_.blocks.size(), UINT8_MAX);
    for (uint32_t b = 0; b < graph_.blocks.size(); b++) {
      const Block &block = graph_.blocks[b];
      if (!counts_ || block.is_dispatch() || is_start_[b])
        continue;
      const Instruction &last = graph_.last_of(block);
      if (last.flow != Flow::branch ||
          last.target != graph_.instructions_of(block).front().address ||
          block.leaves != Block::kStays || is_arrival(b))
        continue;
      counter_of_[b] = counter_in(block);
    }
  }

  bool is_arrival(uint32_t block) const { return plan_.arrivals[block].has_value(); }

  // A register that counts; UINT8_MAX: there is none, or an address needs what the loop itself reads.
  uint8_t counter_in(const Block &block) const {
    std::array<int64_t, kGeneral> steps = {};
    std::array<bool, kGeneral> is_sum = {};
    is_sum.fill(true);
    std::array<bool, kTracked> is_read = {}; // it follows from what was read in the loop
    auto reads = [&](unsigned reg) {
      if (reg == ASSAY_UOP_IMMEDIATE || reg == ASSAY_REG_ZERO || reg == ASSAY_REG_BIAS)
        return false;
      return reg >= kTracked || is_read[reg];
    };
    for (const bool again : {false, true})
      for (const Instruction &each : graph_.instructions_of(block)) {
        if (each.repeats || each.is_call() || may_not_come_back(graph_, each))
          return UINT8_MAX;
        const auto uops = graph_.code.uops_of(each);
        for (uint32_t u = 0; u < uops.size(); u++) {
          const assay_uop &uop = uops[u];
          const bool any =
              reads(uop.a) || (uop.b != ASSAY_UOP_IMMEDIATE && (reads(uop.b) || reads(uop.c)));
          for (const Access &access : graph_.code.accesses_of(each))
            if (any && access.uop == each.uop + u)
              return UINT8_MAX;
          if (!binary::has_result(uop) || uop.dst >= kTracked)
            continue;
          is_read[uop.dst] = any || binary::reads_memory(uop) || !is_computed(uop);
          if (uop.dst >= kGeneral || again)
            continue;
          const bool by_constant =
              uop.b == ASSAY_UOP_IMMEDIATE && uop.a == uop.dst && uop.width == 8;
          if (by_constant && uop.op == ASSAY_UOP_add)
            steps[uop.dst] += uop.imm;
          else if (by_constant && uop.op == ASSAY_UOP_sub)
            steps[uop.dst] -= uop.imm;
          else
            is_sum[uop.dst] = false;
        }
        if (each.opaque)
          for (unsigned reg = 0; reg < kGeneral; reg++)
            if (each.writes & binary::bit(reg)) {
              is_sum[reg] = false;
              is_read[reg] = true;
            }
      }
    for (uint8_t reg = 0; reg < kGeneral; reg++)
      if (is_sum[reg] && steps[reg])
        return reg;
    return UINT8_MAX;
  }

  // Each block's first skeleton block; a start within a block begins another one.
  void number_blocks() {
    first_of_.assign(graph_.blocks.size(), 0);
    uint32_t count = 0;
    for (uint32_t b = 0; b < graph_.blocks.size(); b++) {
      const Block &block = graph_.blocks[b];
      if (block.is_dispatch())
        continue;
      first_of_[b] = count;
      count += 1 + (counter_of_[b] != UINT8_MAX); // before the loop, the loop
      for (uint32_t i = block.first; i < block.first + block.count; i++)
        count += i > block.first && starts_at(block, i);
    }
    plan_.skeleton.blocks.resize(count);
    plan_.stretches.resize(graph_.blocks.size());
  }

  // Whether a start stands before an instruction that is not its block's first one.
  bool starts_at(const Block &block, uint32_t index) const {
    if (index == block.first)
      return false;
    const Instruction &before = graph_.code.instructions[index - 1];
    return before.is_call() || may_not_come_back(graph_, before) ||
           may_not_come_back(graph_, graph_.code.instructions[index]);
  }

  // ---- definitions

  NodeId add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size() - 1);
  }

  void begin_block(uint32_t b) {
    auto &at = begin_.emplace_back();
    at.fill(kUnknown);
    const Block &block = graph_.blocks[b];
    for (uint8_t reg = 0; reg < kGeneral; reg++) {
      Node node;
      node.is_given = !block.is_dispatch() && is_start_[b];
      node.times = times_[b];
      node.reg = reg;
      // What is logged in a loop that is counted would have to be in each iteration.
      node.logged_bytes = block.is_dispatch() || counter_of_[b] != UINT8_MAX ? 0 : 8;
      at[reg] = add(node);
    }
    Node flags;
    flags.is_given = !block.is_dispatch() && is_start_[b];
    flags.times = times_[b];
    at[ASSAY_REG_FLAGS] = add(flags);
  }

  void start_within(uint32_t b, uint32_t index) {
    auto &made = starts_within_[index];
    made.fill(kUnknown);
    for (uint8_t reg = 0; reg < kGeneral; reg++) {
      Node node;
      node.is_given = true;
      node.times = times_[b];
      node.reg = reg;
      node.logged_bytes = 8;
      made[reg] = add(node);
      now_[reg] = made[reg];
    }
    now_[ASSAY_REG_FLAGS] = kUnknown;
  }

  NodeId node_of(unsigned reg) const {
    if (reg == ASSAY_UOP_IMMEDIATE || reg == ASSAY_REG_ZERO || reg == ASSAY_REG_BIAS ||
        reg == ASSAY_REG_FS || reg == ASSAY_REG_CONTROL)
      return kFree;
    return reg < kTracked ? now_[reg] : kUnknown;
  }

  void define(uint32_t b) {
    const Block &block = graph_.blocks[b];
    now_.fill(kUnknown);
    for (unsigned reg = 0; reg <= ASSAY_REG_FLAGS; reg++)
      now_[reg] = begin_[b][reg];
    for (uint32_t i = block.first; i < block.first + block.count; i++) {
      if (starts_at(block, i))
        start_within(b, i);
      const Instruction &instruction = graph_.code.instructions[i];
      if (instruction.repeats && instruction.accesses)
        define_repeated(b, instruction, i);
      else
        define(b, instruction, i);
    }
    end_.resize(graph_.blocks.size());
    end_[b] = now_;
    if (counter_of_[b] != UINT8_MAX) // how far it goes is told by where it begins
      sinks_.push_back({{begin_[b][counter_of_[b]], kFree, kFree}, false, b});
  }

  void define(uint32_t b, const Instruction &instruction, uint32_t index) {
    const auto uops = graph_.code.uops_of(instruction);
    const auto accesses = graph_.code.accesses_of(instruction);
    std::array<NodeId, kGeneral> before;
    std::copy_n(now_.begin(), kGeneral, before.begin());
    for (uint32_t u = 0; u < uops.size(); u++) {
      const assay_uop &uop = uops[u];
      for (const Access &access : accesses)
        if (access.has_address() && !access.masked && access.size &&
            access.uop == instruction.uop + u)
          sinks_.push_back({operands_of(uop), false, b});
      if (uop.op == ASSAY_UOP_branch) {
        if (instruction.flow != Flow::branch) {
          is_plannable_ = false;
          return;
        }
        branch_sink_[b] = sinks_.size();
        sinks_.push_back({{node_of(uop.b), kFree, kFree}, true, b});
        continue;
      }
      if (!binary::has_result(uop) || uop.dst >= kTracked || uop.dst == ASSAY_REG_ZERO)
        continue;
      Node node;
      node.times = times_[b];
      if (binary::reads_memory(uop)) {
        node.is_given = true;
        node.bytes = uop.width;
      } else if (!is_computed(uop)) {
        now_[uop.dst] = given(b, 8);
        result_of_[instruction.uop + u] = now_[uop.dst];
        continue;
      } else {
        const bool is_zero = uop.a == uop.b && (uop.op == ASSAY_UOP_xor || uop.op == ASSAY_UOP_sub);
        if (!is_zero)
          for (NodeId input : operands_of(uop))
            if (input != kFree)
              node.inputs.push_back(input);
        node.bytes = assay_uop_has_width(uop.op) ? uop.width : 8;
      }
      now_[uop.dst] = result_of_[instruction.uop + u] = add(std::move(node));
    }
    if (instruction.opaque) {
      for (unsigned reg = 0; reg < kGeneral; reg++)
        if (instruction.writes & binary::bit(reg))
          opaque_[{index, reg}] = now_[reg] = given(b, 8);
      if (instruction.writes & binary::bit(ASSAY_REG_FLAGS))
        now_[ASSAY_REG_FLAGS] = kUnknown;
    }
    if (instruction.is_call()) // what follows begins with a start
      for (unsigned reg = 0; reg <= ASSAY_REG_FLAGS; reg++)
        now_[reg] = kUnknown;
    if (instruction.flow == Flow::next && counter_of_[b] == UINT8_MAX)
      for (uint8_t reg = 0; reg < kGeneral; reg++)
        if (now_[reg] != before[reg] && now_[reg] > kUnknown)
          can_log(now_[reg], reg, instruction, uops);
    for (unsigned reg = ASSAY_REG_TEMPORARIES; reg < kTracked; reg++)
      now_[reg] = kUnknown;
  }

  NodeId given(uint32_t b, uint8_t bytes) {
    Node node;
    node.is_given = true;
    node.times = times_[b];
    node.bytes = bytes;
    return add(node);
  }

  // A register's value may be logged behind its instruction; so may what it was made of, where that is its low bytes.
  void can_log(NodeId node, uint8_t reg, const Instruction &instruction,
               std::span<const assay_uop> uops) {
    nodes_[node].reg = reg;
    nodes_[node].logged_bytes = nodes_[node].bytes;
    for (uint32_t u = 0; u < uops.size(); u++) {
      if (result_of_[instruction.uop + u] != node)
        continue;
      const assay_uop &uop = uops[u];
      NodeId part = kNoNode;
      unsigned bytes = 0;
      if (uop.op == ASSAY_UOP_sign_extend) {
        part = node_before(instruction, u, uop.a);
        bytes = static_cast<unsigned>(64 - uop.i) / 8;
      } else if (uop.op == ASSAY_UOP_put8 || uop.op == ASSAY_UOP_put16) {
        part = node_before(instruction, u, uop.b);
        bytes = uop.op == ASSAY_UOP_put8 ? 1 : 2;
      } else if (uop.op == ASSAY_UOP_copy && uop.b == ASSAY_REG_ZERO) {
        part = node_before(instruction, u, uop.a);
        bytes = uop.width;
      }
      if (part != kNoNode && !nodes_[part].logged_bytes && nodes_[part].bytes <= bytes &&
          nodes_[part].is_given) {
        nodes_[part].reg = reg;
        nodes_[part].logged_bytes = nodes_[part].bytes;
      }
    }
  }

  // What the instruction itself made of a temporary before one of its micro-ops.
  NodeId node_before(const Instruction &instruction, uint32_t u, unsigned reg) const {
    if (reg < ASSAY_REG_TEMPORARIES || reg >= kTracked)
      return kNoNode;
    const auto uops = graph_.code.uops_of(instruction);
    while (u-- > 0)
      if (binary::has_result(uops[u]) && uops[u].dst == reg)
        return result_of_[instruction.uop + u];
    return kNoNode;
  }

  std::array<NodeId, 3> operands_of(const assay_uop &uop) const {
    std::array<NodeId, 3> nodes = {node_of(uop.a), kFree, kFree};
    if (uop.b != ASSAY_UOP_IMMEDIATE) {
      nodes[1] = node_of(uop.b);
      nodes[2] = node_of(uop.c);
    }
    return nodes;
  }

  void define_repeated(uint32_t b, const Instruction &instruction, uint32_t index) {
    for (const Access &access : graph_.code.accesses_of(instruction)) {
      if (!access.has_address() || access.masked || !access.size)
        is_plannable_ = false;
      else
        sinks_.push_back({operands_of(graph_.code.uops[access.uop]), false, b});
    }
    sinks_.push_back({{now_[ASSAY_REG_RCX], kFree, kFree}, false, b});
    std::array<NodeId, kGeneral> before;
    std::copy_n(now_.begin(), kGeneral, before.begin());
    auto &made = repeated_[index];
    made.fill(kNoNode);
    for (const assay_uop &uop : graph_.code.uops_of(instruction)) {
      if (!binary::has_result(uop) || uop.dst > ASSAY_REG_FLAGS)
        continue;
      if (uop.dst == ASSAY_REG_FLAGS) {
        now_[uop.dst] = kUnknown;
        continue;
      }
      if (made[uop.dst] != kNoNode)
        continue;
      const NodeId node = given(b, 8);
      nodes_[node].reg = static_cast<uint8_t>(uop.dst);
      nodes_[node].logged_bytes = 8;
      made[uop.dst] = now_[uop.dst] = node;
    }
    if (instruction.flow != Flow::next)
      is_plannable_ = false;
  }

  // What comes in at blocks that are no starts.
  void join() {
    for (uint32_t b = 0; b < graph_.blocks.size(); b++) {
      const Block &block = graph_.blocks[b];
      if (!block.is_dispatch() && is_start_[b])
        continue;
      for (uint32_t from : block.predecessors)
        for (unsigned reg = 0; reg <= ASSAY_REG_FLAGS; reg++) {
          const NodeId input =
              graph_.blocks[from].is_dispatch() ? begin_[from][reg] : end_[from][reg];
          auto &inputs = nodes_[begin_[b][reg]].inputs;
          if (std::find(inputs.begin(), inputs.end(), input) == inputs.end())
            inputs.push_back(input);
        }
    }
  }

  // Of joins: as many bytes as what comes in has.
  void widths() {
    std::vector<NodeId> joins;
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (graph_.blocks[b].is_dispatch() || !is_start_[b])
        for (unsigned reg = 0; reg < kGeneral; reg++) {
          joins.push_back(begin_[b][reg]);
          nodes_[joins.back()].bytes = 1;
        }
    for (bool changed = true; changed;) {
      changed = false;
      for (NodeId join : joins)
        for (NodeId input : nodes_[join].inputs)
          if (nodes_[input].bytes > nodes_[join].bytes) {
            nodes_[join].bytes = nodes_[input].bytes;
            changed = true;
          }
    }
    for (NodeId join : joins)
      if (nodes_[join].logged_bytes)
        nodes_[join].logged_bytes = nodes_[join].bytes;
  }

  // ---- the cut

  static uint64_t price(double times, unsigned bytes) {
    constexpr double kScale = 1 << 10, kWork = 4; // a store costs as much as so many bytes
    return static_cast<uint64_t>(times * kScale * (bytes + kWork)) + 1;
  }

  bool cut() {
    MinCut network;
    std::vector<NodeId> work;
    auto node = [&](NodeId id) {
      Node &of = nodes_[id];
      if (of.cut == UINT32_MAX) {
        of.cut = network.node(of.logged_bytes ? price(of.times, of.logged_bytes) : MinCut::kNever);
        work.push_back(id);
      }
      return of.cut;
    };
    for (Sink &sink : sinks_) {
      uint32_t at = UINT32_MAX;
      if (sink.is_branch) {
        if (!is_decided_by_flags(sink))
          at = network.node(MinCut::kNever);
        else if (counter_of_[sink.block] != UINT8_MAX)
          at = network.node(price(times_[sink.block] / 8, 8));
        else
          at = network.node(price(times_[sink.block], 1));
        network.sink(at);
        sink.cut = at;
      }
      for (NodeId each : sink.nodes) {
        if (each == kFree)
          continue;
        const uint32_t from = node(each);
        if (sink.is_branch)
          network.edge(from, at);
        else
          network.sink(from);
      }
    }
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (nodes_[id].is_given)
        network.source(nodes_[id].cut);
      for (NodeId input : nodes_[id].inputs)
        if (input != kFree)
          network.edge(node(input), nodes_[id].cut);
    }
    if (!network.solve())
      return false;
    is_cut_.assign(nodes_.size(), false);
    for (NodeId id = 0; id < nodes_.size(); id++)
      is_cut_[id] = nodes_[id].cut != UINT32_MAX && network.is_cut(nodes_[id].cut);
    for (Sink &sink : sinks_)
      sink.cut = sink.is_branch && network.is_cut(sink.cut);
    return true;
  }

  // Whether the branch is one of 16 conditions, which setcc yields as well.
  bool is_decided_by_flags(const Sink &sink) const {
    const Instruction &last = graph_.last_of(graph_.blocks[sink.block]);
    for (const assay_uop &uop : graph_.code.uops_of(last))
      if (binary::has_result(uop) && !assay_uop_is_condition(uop.op))
        return false;
    return true;
  }

  void find_needed() {
    is_needed_.assign(nodes_.size(), false);
    std::vector<NodeId> work;
    auto need = [&](NodeId id) {
      if (id != kFree && !is_needed_[id]) {
        is_needed_[id] = true;
        work.push_back(id);
      }
    };
    for (const Sink &sink : sinks_)
      if (!sink.cut || !sink.is_branch)
        for (NodeId each : sink.nodes)
          need(each);
    // The counter of a loop whose end is logged.
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (is_counted(b))
        need(end_[b][counter_of_[b]]);
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (!is_cut_[id])
        for (NodeId input : nodes_[id].inputs)
          need(input);
    }
  }

  bool is_counted(uint32_t b) const {
    auto sink = branch_sink_.find(b);
    return counter_of_[b] != UINT8_MAX && sink != branch_sink_.end() && sinks_[sink->second].cut;
  }

  // ---- what is left

  // The skeleton's block for one of the graph's where control goes on.
  uint32_t go_to(uint32_t block) const {
    return graph_.blocks[block].is_dispatch() || is_start_[block] ? SkeletonBlock::kOut
                                                                  : first_of_[block];
  }
  uint32_t go_to(uint64_t address) const {
    auto found = block_of_.find(address);
    return found == block_of_.end() ? SkeletonBlock::kOut : go_to(found->second);
  }

  void emit(uint32_t b) {
    const Block &block = graph_.blocks[b];
    at_ = first_of_[b];
    stretches_ = &plan_.stretches[b];
    stretches_->emplace_back();
    out().address = graph_.instructions_of(block).front().address;
    if (is_start_[b])
      begin_start(begin_[b], block.first);
    else
      for (uint8_t reg = 0; reg < kGeneral; reg++)
        if (const NodeId node = begin_[b][reg]; is_needed_[node] && is_cut_[node])
          log(node, reg, block.first, out().address);
    if (counter_of_[b] != UINT8_MAX)
      begin_loop(b);
    for (uint32_t i = block.first; i < block.first + block.count; i++) {
      const Instruction &instruction = graph_.code.instructions[i];
      if (starts_at(block, i)) {
        out().end = SkeletonBlock::End::stop;
        at_++;
        out().address = instruction.address;
        stretches_->emplace_back();
        begin_start(starts_within_.at(i), i);
      }
      if (instruction.repeats && instruction.accesses)
        emit_repeated(instruction, i);
      else
        emit(instruction, i);
    }
    end_block(b);
  }

  SkeletonBlock &out() { return plan_.skeleton.blocks[at_]; }

  void point(PlanPoint point) {
    PlanStretch &stretch = stretches_->back();
    point.offset = stretch.bytes;
    stretch.bytes += point.bytes;
    stretch.points.push_back(point);
  }

  template <class Nodes> void begin_start(const Nodes &nodes, uint32_t index) {
    PlanStart start;
    start.block = at_;
    stretches_->back().start = static_cast<uint32_t>(plan_.starts.size());
    point({index, PlanPoint::Kind::start, 0, 4});
    for (uint8_t reg = 0; reg < kGeneral; reg++)
      if (const NodeId node = nodes[reg]; node != kUnknown && is_needed_[node] && is_cut_[node]) {
        start.registers.push_back(reg);
        point({index, PlanPoint::Kind::value, reg, 8});
        plan_.values++;
      }
    plan_.starts.push_back(std::move(start));
  }

  void in(unsigned variable, uint8_t bytes, uint64_t pc) {
    SkeletonStep step;
    step.kind = SkeletonStep::Kind::in;
    step.size = bytes;
    step.pc = pc;
    step.uop.dst = static_cast<uint16_t>(variable);
    out().steps.push_back(step);
  }

  void log(NodeId node, unsigned variable, uint32_t before, uint64_t pc) {
    const Node &of = nodes_[node];
    point({before, PlanPoint::Kind::value, of.reg, of.logged_bytes});
    plan_.values++;
    in(variable, of.logged_bytes, pc);
  }

  void begin_loop(uint32_t b) {
    if (is_counted(b))
      in(kLoopEnd, 8, out().address);
    out().end = SkeletonBlock::End::go;
    out().next = {at_ + 1};
    at_++;
    out().address = plan_.skeleton.blocks[at_ - 1].address;
  }

  void emit_access(const Instruction &instruction, const Access &access, const assay_uop &uop,
                   SkeletonStep::Kind kind) {
    SkeletonStep step;
    step.kind = kind;
    step.write = access.write;
    step.size = access.size;
    step.pc = instruction.address;
    step.uop = uop;
    out().steps.push_back(step);
    plan_.accesses++;
  }

  void emit(const Instruction &instruction, uint32_t index) {
    const auto uops = graph_.code.uops_of(instruction);
    for (uint32_t u = 0; u < uops.size(); u++) {
      for (const Access &access : graph_.code.accesses_of(instruction))
        if (access.has_address() && !access.masked && access.size &&
            access.uop == instruction.uop + u)
          emit_access(instruction, access, uops[u], SkeletonStep::Kind::access);
      const NodeId node = result_of_[instruction.uop + u];
      if (node == kNoNode || !is_needed_[node])
        continue;
      if (is_cut_[node]) {
        log(node, uops[u].dst, index + 1, instruction.address);
      } else if (!nodes_[node].is_given) {
        SkeletonStep step;
        step.pc = instruction.address;
        step.uop = uops[u];
        out().steps.push_back(step);
      }
    }
    if (instruction.opaque)
      for (unsigned reg = 0; reg < kGeneral; reg++)
        if (instruction.writes & binary::bit(reg))
          emit_given(opaque_result(index, reg), reg, index, instruction.address);
  }

  void emit_given(NodeId node, unsigned reg, uint32_t index, uint64_t pc) {
    if (node != kNoNode && is_needed_[node] && is_cut_[node])
      log(node, reg, index + 1, pc);
  }

  // Of an opaque instruction: the node that stands for what it leaves in a register.
  NodeId opaque_result(uint32_t index, unsigned reg) const {
    auto found = opaque_.find({index, reg});
    return found == opaque_.end() ? kNoNode : found->second;
  }

  void emit_repeated(const Instruction &instruction, uint32_t index) {
    bool compares = false;
    for (const assay_uop &uop : graph_.code.uops_of(instruction))
      compares |= binary::has_result(uop) && uop.dst == ASSAY_REG_FLAGS;
    for (const Access &access : graph_.code.accesses_of(instruction))
      emit_access(instruction, access, graph_.code.uops[access.uop],
                  compares ? SkeletonStep::Kind::compare : SkeletonStep::Kind::repeat);
    if (compares) {
      point({index + 1, PlanPoint::Kind::value, ASSAY_REG_RCX, 8});
      plan_.values++;
    }
    const auto &made = repeated_.at(index);
    for (unsigned reg = 0; reg < kGeneral; reg++)
      emit_given(made[reg], reg, index, instruction.address);
  }

  void end_block(uint32_t b) {
    const Block &block = graph_.blocks[b];
    const Instruction &last = graph_.last_of(block);
    SkeletonBlock &to = out();
    using End = SkeletonBlock::End;
    auto go = [&](uint32_t next) {
      to.end = next == SkeletonBlock::kOut ? End::stop : End::go;
      if (to.end == End::go)
        to.next = {next};
    };
    if (last.is_call() || may_not_come_back(graph_, last) || last.flow == Flow::ret ||
        last.flow == Flow::stop) {
      to.end = End::stop;
    } else if (last.flow == Flow::next) {
      go(go_to(last.end()));
    } else if (last.flow == Flow::jump) {
      go(go_to(last.target));
    } else if (last.flow == Flow::indirect_jump) {
      to.end = End::stop;
      if (!targets_.empty() && !block.successors.empty()) {
        to.end = End::choose;
        for (uint32_t target : targets_)
          to.next.push_back(go_to(target));
      }
    } else {
      branch(b, last);
    }
  }

  void branch(uint32_t b, const Instruction &last) {
    SkeletonBlock &to = out();
    using End = SkeletonBlock::End;
    uint32_t taken = go_to(last.target);
    const uint32_t runs_on = go_to(last.end());
    if (counter_of_[b] != UINT8_MAX)
      taken = at_; // not to where the loop is entered
    const Sink &sink = sinks_[branch_sink_.at(b)];
    to.next = {taken, runs_on};
    if (taken == runs_on) {
      to.end = taken == SkeletonBlock::kOut ? End::stop : End::go;
      if (to.end == End::stop)
        to.next.clear();
      else
        to.next.pop_back();
      return;
    }
    const uint32_t index = graph_.blocks[b].first + graph_.blocks[b].count;
    if (!sink.cut) {
      to.end = End::branch;
      for (const assay_uop &uop : graph_.code.uops_of(last))
        if (uop.op == ASSAY_UOP_branch)
          to.condition = uop.b;
    } else if (is_counted(b)) {
      to.end = End::count;
      to.condition = counter_of_[b];
      point({index, PlanPoint::Kind::behind, counter_of_[b], 8});
      plan_.values++;
    } else {
      to.end = End::logged;
      point({index - 1, PlanPoint::Kind::branch, 0, 1});
      plan_.branches++;
    }
  }

  const FlowGraph &graph_;
  const bool counts_;
  RoutinePlan plan_;
  bool is_plannable_ = true;
  std::unordered_map<uint64_t, uint32_t> block_of_; // by address
  binary::Edges edges_; // with one node more, which leads to all entries
  binary::Loops loops_;
  std::vector<double> times_;
  std::vector<bool> is_start_;
  std::vector<uint32_t> targets_;   // of indirect jumps, by the number that is logged
  std::vector<uint8_t> counter_of_; // by block: the register that counts it, or UINT8_MAX
  std::vector<uint32_t> first_of_;  // by block: its first one in the skeleton

  std::vector<Node> nodes_;
  using Registers = std::array<NodeId, ASSAY_REG_FLAGS + 1>;
  std::vector<Registers> begin_;                           // by block
  std::vector<std::array<NodeId, kTracked>> end_;          // by block
  std::array<NodeId, kTracked> now_ = {};                  // where the walk is
  std::unordered_map<uint32_t, Registers> starts_within_;  // by instruction
  std::unordered_map<uint32_t, Registers> repeated_;       // by instruction: what it leaves
  std::map<std::pair<uint32_t, unsigned>, NodeId> opaque_; // by instruction and register
  std::vector<NodeId> result_of_;                          // by micro-op
  std::vector<Sink> sinks_;
  std::unordered_map<uint32_t, size_t> branch_sink_; // by block
  std::vector<bool> is_cut_, is_needed_;

  uint32_t at_ = 0; // of the skeleton's blocks
  std::vector<PlanStretch> *stretches_ = nullptr;
};

} // namespace

std::optional<RoutinePlan> plan_routine(const FlowGraph &graph) {
  if (auto plan = Planner(graph, true).plan())
    return plan;
  return Planner(graph, false).plan();
}

} // namespace trace
