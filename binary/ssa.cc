// Joins are placed where definitions meet (binary/dominators.h) and the variable is live, and names
// are given on a walk of the dominator tree. Source: Cytron, Ferrante, Rosen, Wegman, Zadeck:
// Efficiently Computing Static Single Assignment Form and the Control Dependence Graph.
//
// A variable's liveness is one bit in a word, because there are 63 of them.

#include "binary/ssa.h"

#include "binary/effects.h"

#include <algorithm>
#include <array>
#include <bit>
#include <ranges>

namespace binary {
namespace {

constexpr VariableSet kAll = bit(kVariables) - 1;

class Construction {
public:
  explicit Construction(const FlowGraph &graph) : graph_(graph) {}

  Ssa run() {
    make_nodes();
    find_live();
    place_joins();
    rename();
    ssa_.values.shrink_to_fit(); // nothing is added; forms are made beside it
    ssa_.join_operands.shrink_to_fit();
    std::ranges::sort(ssa_.stored, {}, &Ssa::Stored::place);
    return std::move(ssa_);
  }

private:
  void make_nodes() {
    auto blocks = static_cast<uint32_t>(graph_.blocks.size());
    ssa_.successors.assign(blocks + 1, {});
    std::vector<uint32_t> original(blocks + 1);
    for (uint32_t b = 0; b < blocks; b++) {
      original[b + 1] = graph_.blocks[b].is_dispatch() ? Node::kNoBlock : b;
      for (uint32_t to : graph_.blocks[b].successors)
        ssa_.successors[b + 1].push_back(to + 1);
    }
    original[0] = Node::kNoBlock;
    for (uint32_t entry : graph_.entries)
      if (auto &from_root = ssa_.successors[Ssa::kRoot];
          std::find(from_root.begin(), from_root.end(), entry + 1) == from_root.end())
        from_root.push_back(entry + 1);
    make_reducible(ssa_.successors, Ssa::kRoot, original, 4 * size_t{blocks} + 200);
    ssa_.dominators = dominators(ssa_.successors, Ssa::kRoot);
    ssa_.loops = find_loops(ssa_.successors, ssa_.dominators, Ssa::kRoot);
    if (add_preheaders(original)) {
      ssa_.dominators = dominators(ssa_.successors, Ssa::kRoot);
      ssa_.loops = find_loops(ssa_.successors, ssa_.dominators, Ssa::kRoot);
    }
    size_t count = ssa_.successors.size();
    ssa_.nodes.resize(count);
    ssa_.predecessors = predecessors();
    place_ = AdjacencyLists(count, [&](auto add) {
      std::vector<uint32_t> seen(count, 0);
      each_edge([&](uint32_t from, uint32_t to) { add(from, seen[to]++); });
    });
    uint32_t uops = 0;
    for (uint32_t node = 0; node < count; node++) {
      ssa_.nodes[node].block = original[node];
      ssa_.nodes[node].first_uop = uops;
      if (!reachable(node))
        continue;
      for (const Instruction &instruction : instructions_of(node))
        uops += instruction.uops;
    }
    ssa_.uops.resize(uops);
  }

  // Loops that are entered from several places get an empty node before their header, where what they
  // start from is joined.
  bool add_preheaders(std::vector<uint32_t> &original) {
    bool any = false;
    const AdjacencyLists entered_from = predecessors();
    for (const Loop &loop : ssa_.loops.all) {
      if (loop.irreducible)
        continue;
      std::vector<uint32_t> outside;
      for (uint32_t node : entered_from[loop.header])
        if (!ssa_.dominators.dominates(loop.header, node))
          outside.push_back(node);
      if (outside.size() < 2)
        continue;
      auto before = static_cast<uint32_t>(ssa_.successors.size());
      ssa_.successors.push_back({loop.header});
      original.push_back(Node::kNoBlock);
      for (uint32_t node : outside)
        for (uint32_t &to : ssa_.successors[node])
          if (to == loop.header)
            to = before;
      any = true;
    }
    return any;
  }

  // Of nodes that can be reached, by number.
  template <class Visit> void each_edge(Visit visit) const {
    for (uint32_t node = 0; node < ssa_.successors.size(); node++)
      if (reachable(node))
        for (uint32_t to : ssa_.successors[node])
          visit(node, to);
  }
  AdjacencyLists predecessors() const {
    return {ssa_.successors.size(),
            [&](auto add) { each_edge([&](uint32_t from, uint32_t to) { add(to, from); }); }};
  }

  bool reachable(uint32_t node) const { return ssa_.dominators.number[node] != Dominators::kNone; }
  std::span<const Instruction> instructions_of(uint32_t node) const {
    uint32_t block = ssa_.nodes[node].block;
    return block == Node::kNoBlock ? std::span<const Instruction>{}
                                   : graph_.instructions_of(graph_.blocks[block]);
  }

  void find_live() {
    size_t count = ssa_.nodes.size();
    std::vector<VariableSet> reads(count, 0);
    writes_.assign(count, 0);
    live_in_.assign(count, 0);
    for (uint32_t node : ssa_.dominators.order)
      for (const Instruction &instruction : instructions_of(node)) {
        Effects effects = effects_of(graph_.code, instruction);
        reads[node] |= effects.reads & ~writes_[node];
        writes_[node] |= effects.writes;
      }
    std::vector<uint32_t> work;
    for (uint32_t node : ssa_.dominators.order) {
      live_in_[node] = reads[node];
      work.push_back(node);
    }
    while (!work.empty()) {
      uint32_t node = work.back();
      work.pop_back();
      for (uint32_t from : ssa_.predecessors[node]) {
        VariableSet more = live_in_[node] & ~writes_[from] & ~live_in_[from];
        if (!more)
          continue;
        live_in_[from] |= more;
        work.push_back(from);
      }
    }
  }

  void place_joins() {
    joins_ = join_points(ssa_.successors, ssa_.dominators, writes_);
    for (uint32_t node = 0; node < joins_.size(); node++)
      joins_[node] &= kAll & live_in_[node];
  }

  ValueId make(Value value) {
    ssa_.values.push_back(value);
    return {static_cast<uint32_t>(ssa_.values.size() - 1)};
  }

  void rename() {
    for (unsigned variable = 0; variable < kVariables; variable++)
      current_[variable] =
          make({.kind = ValueKind::entry, .variable = static_cast<uint8_t>(variable), .uop = 0});
    for (uint32_t node : ssa_.dominators.order) {
      ssa_.nodes[node].first_join = static_cast<uint32_t>(ssa_.values.size());
      ssa_.nodes[node].joins = static_cast<uint32_t>(std::popcount(joins_[node]));
      for (VariableSet left = joins_[node]; left; left &= left - 1) {
        auto variable = static_cast<uint8_t>(std::countr_zero(left));
        make({.kind = ValueKind::join,
              .variable = variable,
              .node = node,
              .first_operand = static_cast<uint32_t>(ssa_.join_operands.size())});
        ssa_.join_operands.resize(ssa_.join_operands.size() + ssa_.predecessors[node].size());
      }
    }
    // Down the dominator tree; what a node changed is put back when it is left.
    struct Visit {
      uint32_t node;
      size_t next_child;
      std::array<ValueId, kVariables> before;
    };
    std::vector<Visit> stack;
    auto enter = [&](uint32_t node) {
      stack.push_back({node, 0, current_});
      number(node);
    };
    enter(Ssa::kRoot);
    while (!stack.empty()) {
      auto children = ssa_.dominators.children[stack.back().node];
      if (stack.back().next_child < children.size()) {
        enter(children[stack.back().next_child++]);
      } else {
        current_ = stack.back().before;
        stack.pop_back();
      }
    }
  }

  void number(uint32_t node) {
    for (ValueId join : ssa_.joins_of(node))
      current_[ssa_.values[join.v].variable] = join;
    find_live_behind(node);
    uint32_t at = ssa_.nodes[node].first_uop;
    for (const Instruction &instruction : instructions_of(node)) {
      number(node, instruction, at);
      at += instruction.uops;
    }
    for (size_t i = 0; i < ssa_.successors[node].size(); i++)
      for (ValueId join : ssa_.joins_of(ssa_.successors[node][i]))
        ssa_.join_operands[ssa_.values[join.v].first_operand + place_[node][i]] =
            current_[ssa_.values[join.v].variable];
  }

  static bool defines_many(const Instruction &instruction) {
    return instruction.opaque || instruction.is_call();
  }

  // What is read behind each call and each opaque instruction of a node, the last one first.
  void find_live_behind(uint32_t node) {
    live_behind_.clear();
    auto instructions = instructions_of(node);
    if (std::none_of(instructions.begin(), instructions.end(), defines_many))
      return;
    VariableSet live = 0;
    for (uint32_t to : ssa_.successors[node])
      live |= live_in_[to];
    for (const Instruction &instruction : instructions | std::views::reverse) {
      if (defines_many(instruction))
        live_behind_.push_back(live);
      Effects effects = effects_of(graph_.code, instruction);
      live = (live & ~effects.writes) | effects.reads;
    }
  }

  ValueId read(unsigned reg) const {
    if (!is_register(reg))
      return {};
    unsigned variable = variable_of(reg);
    return variable < kVariables ? current_[variable] : temporaries_[reg - ASSAY_REG_TEMPORARIES];
  }

  void number(uint32_t node, const Instruction &instruction, uint32_t at) {
    auto index = static_cast<uint32_t>(&instruction - graph_.code.instructions.data());
    ValueId stack_pointer = current_[ASSAY_REG_RSP];
    for (uint32_t i = 0; i < instruction.uops; i++) {
      const assay_uop &uop = graph_.code.uops[instruction.uop + i];
      UopValues &values = ssa_.uops[at + i];
      values.a = read(uop.a);
      values.b = read(uop.b);
      if (uses_c(uop))
        values.c = read(uop.c);
      if (const ValueId stored = uop.op == ASSAY_UOP_store ? read(uop.dst) : ValueId{};
          stored.known() &&
          (ssa_.values[stored.v].variable < kFlags || ssa_.values[stored.v].variable == kVariables))
        ssa_.stored.push_back({at + i, stored});
      unsigned variable = writes_memory(uop) ? unsigned{kMemory} : variable_of(uop.dst);
      if (!writes_memory(uop) && !has_result(uop))
        continue;
      values.result = make({.kind = ValueKind::micro_op,
                            .variable = static_cast<uint8_t>(variable),
                            .node = node,
                            .uop = instruction.uop + i});
      if (variable < kVariables)
        current_[variable] = values.result;
      else
        temporaries_[uop.dst - ASSAY_REG_TEMPORARIES] = values.result;
    }
    if (!defines_many(instruction))
      return;
    const VariableSet live = live_behind_.back();
    live_behind_.pop_back();
    if (instruction.opaque)
      define(graph_.code.touched_by(instruction).writes & live, ValueKind::opaque, node, index);
    if (instruction.is_call()) {
      define(left_by_call(instruction) & live, ValueKind::call, node, index);
      if (instruction.kept & register_bit(ASSAY_REG_RSP))
        current_[ASSAY_REG_RSP] = stack_pointer;
    }
  }

  // One value for all vectors and masks: nothing looks into them.
  void define(VariableSet which, ValueKind kind, uint32_t node, uint32_t instruction) {
    constexpr VariableSet kWide = (bit(kMemory) - 1) & ~(bit(kMasks) - 1);
    ValueId wide;
    for (VariableSet left = which; left; left &= left - 1) {
      auto variable = static_cast<uint8_t>(std::countr_zero(left));
      if ((bit(variable) & kWide) && wide.known()) {
        current_[variable] = wide;
        continue;
      }
      current_[variable] =
          make({.kind = kind, .variable = variable, .node = node, .instruction = instruction});
      if (bit(variable) & kWide)
        wide = current_[variable];
    }
  }

  const FlowGraph &graph_;
  Ssa ssa_;
  AdjacencyLists place_; // of each edge of a node: among the predecessors of where it leads
  std::vector<VariableSet> writes_, live_in_, joins_;
  std::vector<VariableSet> live_behind_; // of the node that is numbered
  std::array<ValueId, kVariables> current_;
  std::array<ValueId, ASSAY_UOP_TEMPORARIES> temporaries_;
};

} // namespace

ValueId Ssa::stored_at(uint32_t place) const {
  auto found = std::ranges::lower_bound(stored, place, {}, &Stored::place);
  return found != stored.end() && found->place == place ? found->value : ValueId{};
}

uint32_t Ssa::instruction_of(const FlowGraph &graph, const Value &made) const {
  if (made.kind != ValueKind::micro_op)
    return made.instruction;
  const auto &all = graph.code.instructions; // in the order of their micro-ops
  auto behind = std::ranges::upper_bound(all, made.uop, {}, &Instruction::uop);
  return static_cast<uint32_t>(behind - all.begin()) - 1;
}

uint64_t Ssa::address_of(const FlowGraph &graph, const Value &made) const {
  return made.kind == ValueKind::join
             ? first_address(graph, made.node)
             : graph.code.instructions[instruction_of(graph, made)].address;
}

uint64_t Ssa::first_address(const FlowGraph &graph, uint32_t node) const {
  const uint32_t block = nodes[next_with_block(node)].block;
  return block == Node::kNoBlock ? 0 : graph.instructions_of(graph.blocks[block]).front().address;
}

Ssa single_assignment(const FlowGraph &graph) {
  return Construction(graph).run();
}

} // namespace binary
