// Contents of registers are followed as a root plus a constant: a root is what a register held at
// some point of the block. To log a root is to log any general register that is a root plus
// something, at a point where it is. Nothing is asked of other blocks: a plan over whole routines,
// which takes values out of loops, replaces this one where it is worth it, and falls back to it.

#include "trace/groups.h"

#include "binary/effects.h"

#include <array>
#include <optional>

namespace trace {
namespace {

using binary::Access;
using binary::Block;
using binary::FlowGraph;
using binary::Instruction;

constexpr unsigned kRegisters = ASSAY_REG_TEMPORARIES + ASSAY_UOP_TEMPORARIES;
constexpr unsigned kGeneral = 16;
constexpr size_t kMaxValues = 200;

using Root = uint32_t;
constexpr Root kConstant = 0, kBias = 1, kFsBase = 2, kFirstRoot = 3;

struct Content {
  Root root = kConstant;
  int64_t offset = 0;
};

enum class Mode : uint8_t { groups, singly, loop };

bool reads_gs(const assay_uop &uop) {
  return uop.a == ASSAY_REG_GS ||
         (!binary::has_immediate(uop) && (uop.b == ASSAY_REG_GS || uop.c == ASSAY_REG_GS));
}

class Walk {
public:
  Walk(const FlowGraph &graph, const Block &block, Mode mode)
      : graph_(graph), block_(block), singly_(mode == Mode::singly), is_loop_(mode == Mode::loop) {
    for (unsigned reg = 0; reg < kRegisters; reg++)
      registers_[reg] = fresh();
    registers_[ASSAY_REG_ZERO] = {kConstant, 0};
    registers_[ASSAY_REG_BIAS] = {kBias, 0};
    registers_[ASSAY_REG_FS] = {kFsBase, 0};
  }

  std::vector<Group> walk() {
    for (uint32_t i = block_.first; i < block_.first + block_.count; i++) {
      at_ = i;
      instruction(graph_.code.instructions[i]);
    }
    close();
    return std::move(groups_);
  }

  // All iterations of a loop as one group. Its accesses may need no values but registers that are
  // what they were when an iteration began, plus the same in each.
  std::optional<Group> walk_loop() {
    const auto begin = registers_;
    before_ = begin;
    group_.values.push_back({block_.first + block_.count, 0, Access::kNoAddress, true});
    for (uint32_t i = block_.first; i < block_.first + block_.count; i++) {
      const Instruction &each = graph_.code.instructions[i];
      if (each.is_call() || each.repeats || binary::may_leave(graph_.code, each))
        return std::nullopt;
      at_ = i;
      before_ = begin; // values are those of the iteration's begin
      accesses_and_results(each);
      after(each);
    }
    if (leaves_out_ || group_.accesses.empty())
      return std::nullopt;
    LoopOfGroup loop;
    loop.steps.push_back(0);
    auto step_of = [&](unsigned reg) -> std::optional<int64_t> {
      if (registers_[reg].root != begin[reg].root)
        return std::nullopt;
      return registers_[reg].offset - begin[reg].offset;
    };
    for (uint8_t v = 1; v < group_.values.size(); v++) {
      GroupValue &value = group_.values[v];
      value.before = block_.first + block_.count;
      const auto step = step_of(value.reg);
      if (!step)
        return std::nullopt;
      loop.steps.push_back(*step);
      if (*step && !loop.counter)
        loop.counter = v;
    }
    for (unsigned reg = 0; reg < kGeneral && !loop.counter; reg++)
      if (const auto step = step_of(reg); step && *step) {
        loop.counter =
            add_value({block_.first + block_.count, static_cast<uint8_t>(reg), Access::kNoAddress});
        loop.steps.push_back(*step);
      }
    if (!loop.counter)
      return std::nullopt;
    group_.values[0].reg = group_.values[loop.counter].reg;
    group_.commit = block_.first + block_.count;
    group_.loop = std::move(loop);
    return std::move(group_);
  }

private:
  Content fresh() { return {next_root_++, 0}; }

  // Of a vector nothing is known, and of two of them not that they are alike.
  Content content(unsigned reg) { return reg < kRegisters ? registers_[reg] : fresh(); }

  void instruction(const Instruction &instruction) {
    before_ = registers_;
    if (instruction.repeats && instruction.accesses) {
      close();
      repeated(instruction);
    }
    accesses_and_results(instruction);
    after(instruction);
  }

  // Micro-op by micro-op; of string instructions the results only.
  void accesses_and_results(const Instruction &instruction) {
    const auto uops = graph_.code.uops_of(instruction);
    const auto accesses =
        instruction.repeats ? std::span<const Access>() : graph_.code.accesses_of(instruction);
    for (uint32_t u = 0; u < uops.size(); u++) {
      for (uint32_t a = 0; a < accesses.size(); a++)
        if (accesses[a].has_address() && accesses[a].uop == instruction.uop + u)
          access(instruction, instruction.access + a, uops[u]);
      result_of(uops[u]);
    }
    for (const Access &each : accesses)
      leaves_out_ |= !each.has_address();
  }

  void after(const Instruction &instruction) {
    if (instruction.opaque)
      for (unsigned reg = 0; reg < kGeneral; reg++)
        if (graph_.code.touched_by(instruction).writes & binary::bit(reg))
          registers_[reg] = fresh();
    if (instruction.repeats) // any number of times
      for (unsigned reg : {ASSAY_REG_RCX, ASSAY_REG_RSI, ASSAY_REG_RDI})
        registers_[reg] = fresh();
    if (instruction.is_call()) {
      for (unsigned reg = 0; reg < kGeneral; reg++)
        registers_[reg] = instruction.kept & binary::register_bit(reg) ? before_[reg] : fresh();
      close();
    } else if (binary::may_leave(graph_.code, instruction)) {
      close();
    }
  }

  Content sum(Content a, Content b, int64_t times = 1) {
    if (b.root == kConstant)
      return {a.root, a.offset + times * b.offset};
    if (a.root == kConstant && times == 1)
      return {b.root, a.offset + b.offset};
    return fresh();
  }

  void result_of(const assay_uop &uop) {
    if (!binary::has_result(uop) || uop.dst >= kRegisters || uop.dst == ASSAY_REG_ZERO)
      return;
    const bool immediate = binary::has_immediate(uop);
    const Content a = content(uop.a);
    const Content b = immediate ? Content{kConstant, uop.imm} : content(uop.b);
    Content to = fresh();
    if (uop.width == 8 && uop.op == ASSAY_UOP_copy)
      to = uop.a == ASSAY_UOP_IMMEDIATE ? b : a;
    else if (uop.width == 8 && uop.op == ASSAY_UOP_add)
      to = sum(a, b);
    else if (uop.width == 8 && uop.op == ASSAY_UOP_sub && b.root == kConstant)
      to = {a.root, a.offset - b.offset};
    else if (uop.width == 8 && uop.op == ASSAY_UOP_lea && !immediate)
      to =
          sum(sum(sum(a, {kConstant, int64_t{uop.i}}), content(uop.c)), b, int64_t{1} << uop.shift);
    registers_[uop.dst] = to;
  }

  // Which value of the group a root is known by.
  struct Known {
    Root root;
    int64_t offset; // of the register over the root
    uint8_t value;
  };

  // A value that tells the root; nullopt where no register holds it when the instruction begins.
  std::optional<Known> value_of(Root root, unsigned operand) {
    for (const Known &known : known_)
      if (known.root == root)
        return known;
    // The operand itself is certain to be live, so that no snippet has used it for anything else.
    if (operand < kGeneral && before_[operand].root == root)
      return known_from(operand);
    for (unsigned reg = 0; reg < kGeneral; reg++)
      if (before_[reg].root == root)
        return known_from(reg);
    return std::nullopt;
  }

  Known known_from(unsigned reg) {
    known_.push_back({before_[reg].root, before_[reg].offset,
                      add_value({at_, static_cast<uint8_t>(reg), Access::kNoAddress})});
    return known_.back();
  }

  uint8_t add_value(GroupValue value) {
    group_.values.push_back(value);
    return static_cast<uint8_t>(group_.values.size() - 1);
  }

  // Whether the term could be added to the address.
  bool add_term(GroupAccess &access, unsigned reg, unsigned shift) {
    return add_term(access, content(reg), shift, reg);
  }
  bool add_term(GroupAccess &access, Content part, unsigned shift, unsigned operand) {
    const auto factor = static_cast<uint64_t>(1) << shift;
    auto add = [&](int64_t offset) {
      access.offset = static_cast<int64_t>(static_cast<uint64_t>(access.offset) +
                                           static_cast<uint64_t>(offset) * factor);
    };
    switch (part.root) {
    case kConstant: add(part.offset); return true;
    case kBias:
    case kFsBase: {
      bool &is_there = part.root == kBias ? access.in_image : access.thread_local_;
      if (shift || is_there)
        return false;
      is_there = true;
      add(part.offset);
      return true;
    }
    default: break;
    }
    const auto known = value_of(part.root, operand);
    if (!known || access.terms == 2)
      return false;
    access.term[access.terms++] = {known->value, static_cast<uint8_t>(shift)};
    add(part.offset - known->offset);
    return true;
  }

  bool has_room() const { return group_.values.size() < kMaxValues; }

  void access(const Instruction &instruction, uint32_t number, const assay_uop &uop) {
    const Access &access = graph_.code.accesses[number];
    // In no register: which elements, how many bytes, where gs begins.
    if (access.masked || access.size == 0 || reads_gs(uop)) {
      leaves_out_ = true;
      return;
    }
    if (!has_room()) {
      if (is_loop_) {
        leaves_out_ = true;
        return;
      }
      close();
    }
    GroupAccess made;
    made.pc = instruction.address;
    made.size = access.size;
    made.write = access.write;
    if (singly_) {
      made.terms = 1;
      made.term[0] = {add_value({at_, 0, number}), 0};
      // What an instruction computes for an address is without the base of a segment.
      for (unsigned reg :
           {unsigned{uop.a}, unsigned{uop.b}, unsigned{binary::uses_c(uop) ? uop.c : uop.a}})
        made.thread_local_ |= content(reg).root == kFsBase;
    } else if (!address(made, uop)) {
      leaves_out_ = true;
      return;
    }
    put(made);
    if (singly_)
      close();
  }

  bool address(GroupAccess &made, const assay_uop &uop) {
    const bool immediate = binary::has_immediate(uop);
    if (!add_term(made, uop.a, 0))
      return false;
    if (immediate)
      return add_term(made, {kConstant, uop.imm}, 0, kRegisters);
    made.offset += uop.i;
    return add_term(made, uop.b, uop.shift) && add_term(made, uop.c, 0);
  }

  void put(const GroupAccess &made) {
    if (group_.accesses.empty())
      first_ = at_;
    group_.accesses.push_back(made);
  }

  // A string instruction with all its repetitions. It goes forward: who sets the direction flag is not logged.
  void repeated(const Instruction &instruction) {
    const uint8_t times = add_value({at_, ASSAY_REG_RCX, Access::kNoAddress});
    std::vector<GroupAccess> all;
    for (const Access &access : graph_.code.accesses_of(instruction)) {
      GroupAccess made;
      made.pc = instruction.address;
      made.size = access.size;
      made.write = access.write;
      made.times = times;
      if (access.has_address() && address(made, graph_.code.uops[access.uop]))
        all.push_back(made);
      else
        leaves_out_ = true;
    }
    const bool compares = binary::writes_flags(graph_.code.uops_of(instruction));
    const uint8_t left =
        compares ? add_value({at_ + 1, ASSAY_REG_RCX, Access::kNoAddress}) : GroupAccess::kOnce;
    for (GroupAccess &made : all) {
      made.left = left;
      put(made);
    }
    close();
  }

  void close() {
    if (!group_.accesses.empty()) {
      group_.commit = group_.values.empty() ? first_ : group_.values.back().before;
      groups_.push_back(std::move(group_));
    }
    group_ = {};
    known_.clear();
  }

  const FlowGraph &graph_;
  const Block &block_;
  const bool singly_, is_loop_;
  std::vector<Group> groups_;
  Group group_;
  bool leaves_out_ = false; // an access whose address no register tells
  std::vector<Known> known_;
  uint32_t at_ = 0, first_ = 0;
  Root next_root_ = kFirstRoot;
  std::array<Content, kRegisters> registers_, before_;
};

} // namespace

std::vector<Group> groups_of(const FlowGraph &graph, const Block &block) {
  return Walk(graph, block, Mode::groups).walk();
}

std::vector<Group> single_accesses(const FlowGraph &graph, const Block &block) {
  return Walk(graph, block, Mode::singly).walk();
}

std::optional<Group> loop_group_of(const FlowGraph &graph, const Block &block) {
  const Instruction &last = graph.last_of(block);
  if (last.flow != binary::Flow::branch ||
      last.target() != graph.instructions_of(block).front().address)
    return std::nullopt;
  return Walk(graph, block, Mode::loop).walk_loop();
}

} // namespace trace
