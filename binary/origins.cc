// A jump through a register is a tail call only if nothing of this function is left to be done: the
// stack pointer is where it was, saved registers are back, and what is jumped to was not computed from
// an address of the code. The same facts say which registers a call of the function leaves alone.
//
// Both are properties of all ways that lead to a place, so they are found by a forward data-flow
// analysis: each general register, and each word of the stack that was stored to with a known distance
// from the stack pointer, holds what some register held at the entry, an address of the frame, a plain
// pointer, or anything. Where ways meet, what they do not agree on is anything.
//
// Taken for granted: stores through other pointers do not overwrite saved registers, and words in
// memory that are addresses of code are those of functions or of labels whose address is taken.
//
// Believing the unwind tables was refused: they say where registers are saved, not that what is there
// is put back, and hand-written assembly often has none.

#include "binary/origins.h"
#include "binary/effects.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <ranges>

namespace binary {
namespace {

constexpr size_t kMaxSlots = 96;

struct Slot {   // a word of the stack
  Origin where; // kind entry or frame
  Origin value;
};

bool is_before(const Origin &a, const Origin &b) {
  return a.kind != b.kind     ? a.kind < b.kind
         : a.reg != b.reg     ? a.reg < b.reg
         : a.place != b.place ? a.place < b.place
                              : a.offset < b.offset;
}

Origin met(const Origin &a, const Origin &b) {
  Origin result;
  if (a.same(b))
    result = a;
  else if (a.is_plain() && b.is_plain())
    result.kind = Origin::pointer;
  result.trust = a.trust | b.trust;
  return result;
}

bool equal(const Origin &a, const Origin &b) {
  return a.same(b) && a.trust == b.trust;
}

struct State {
  std::array<Origin, 16> registers;
  std::vector<Slot> slots; // by where
  bool reached = false;

  // Whether it changed.
  bool meet(const State &other) {
    if (!reached) {
      *this = other;
      return true;
    }
    bool changed = false;
    for (unsigned reg = 0; reg < registers.size(); reg++) {
      Origin both = met(registers[reg], other.registers[reg]);
      changed |= !equal(both, registers[reg]);
      registers[reg] = both;
    }
    size_t kept = 0;
    auto with = other.slots.begin();
    for (const Slot &slot : slots) {
      while (with != other.slots.end() && is_before(with->where, slot.where))
        ++with;
      if (with == other.slots.end() || is_before(slot.where, with->where))
        continue;
      Origin both = met(slot.value, with->value);
      if (both.kind == Origin::computed)
        continue;
      changed |= !equal(both, slot.value);
      slots[kept++] = {slot.where, both};
    }
    changed |= kept != slots.size();
    slots.resize(kept);
    return changed;
  }
};

class Walk {
public:
  explicit Walk(const FlowGraph &graph) : graph_(graph), before_(graph.blocks.size()) {
    for (unsigned reg = 0; reg < 16; reg++) {
      at_entry_.registers[reg].kind = Origin::entry;
      at_entry_.registers[reg].reg = static_cast<uint8_t>(reg);
    }
    at_entry_.reached = true;
  }

  void run() {
    std::vector<uint32_t> rank = ranks();
    using Item = std::pair<uint32_t, uint32_t>; // rank, block
    std::priority_queue<Item, std::vector<Item>, std::greater<>> work;
    std::vector<bool> waits(graph_.blocks.size(), false);
    auto arrive = [&](uint32_t block, const State &from) {
      if (before_[block].meet(from) && !waits[block]) {
        waits[block] = true;
        work.push({rank[block], block});
      }
    };
    for (uint32_t entry : graph_.entries)
      arrive(entry, at_entry_);
    State now; // keeps its memory from block to block
    while (!work.empty()) {
      uint32_t block = work.top().second;
      work.pop();
      waits[block] = false;
      now = before_[block];
      for (const Instruction &instruction : graph_.instructions_of(graph_.blocks[block]))
        execute(instruction, now);
      for (uint32_t to : graph_.blocks[block].successors)
        arrive(to, now);
    }
  }

  std::vector<Exit> exits() {
    std::vector<Exit> found;
    for (uint32_t block = 0; block < graph_.blocks.size(); block++) {
      const Block &what = graph_.blocks[block];
      if (!before_[block].reached || what.is_dispatch())
        continue;
      const Instruction &last = graph_.last_of(what);
      Exit exit;
      exit.block = block;
      exit.flow = last.flow;
      exit.target = last.target();
      switch (last.flow) {
      case Flow::ret:
      case Flow::indirect_jump: break;
      case Flow::jump:
        if (!what.successors.empty())
          continue;
        break;
      case Flow::branch:
        if (what.leaves == Block::kStays)
          continue;
        exit.flow = Flow::jump;
        exit.target = what.leaves;
        break;
      case Flow::next:
        if (what.leaves == Block::kStays)
          continue;
        exit.flow = Flow::jump;
        exit.target = what.leaves;
        break;
      default: continue;
      }
      describe(exit);
      found.push_back(exit);
      if (what.runs_on != Block::kStays) {
        exit.target = what.runs_on;
        found.push_back(exit);
      }
    }
    return found;
  }

private:
  std::vector<uint32_t> ranks() const {
    std::vector<uint32_t> rank(graph_.blocks.size(), UINT32_MAX);
    std::vector<bool> seen(graph_.blocks.size(), false);
    auto next = static_cast<uint32_t>(graph_.blocks.size());
    std::vector<std::pair<uint32_t, size_t>> stack;
    for (uint32_t entry : graph_.entries | std::views::reverse) {
      if (seen[entry])
        continue;
      seen[entry] = true;
      stack.push_back({entry, 0});
      while (!stack.empty()) {
        auto &[block, at] = stack.back();
        const auto &successors = graph_.blocks[block].successors;
        if (at == successors.size()) {
          rank[block] = --next;
          stack.pop_back();
          continue;
        }
        uint32_t to = successors[at++];
        if (!seen[to]) {
          seen[to] = true;
          stack.push_back({to, 0});
        }
      }
    }
    return rank;
  }

  void describe(Exit &exit) {
    State now = before_[exit.block];
    for (const Instruction &instruction : graph_.instructions_of(graph_.blocks[exit.block]))
      execute(instruction, now);
    exit.jumps_to = jumps_to_;
    exit.stack_is_back =
        now.registers[ASSAY_REG_RSP].is_entry(ASSAY_REG_RSP, exit.flow == Flow::ret ? 8 : 0);
    exit.stack_is_unknown = now.registers[ASSAY_REG_RSP].kind == Origin::computed;
    exit.trust[ASSAY_REG_RSP] = now.registers[ASSAY_REG_RSP].trust;
    if (exit.stack_is_back)
      exit.back |= register_bit(ASSAY_REG_RSP);
    for (unsigned reg = 0; reg < 16; reg++) {
      if (reg == ASSAY_REG_RSP)
        continue;
      exit.trust[reg] = now.registers[reg].trust;
      if (now.registers[reg].is_entry(reg))
        exit.back |= register_bit(reg);
    }
    for (const Slot &slot : now.slots)
      if (slot.value.kind == Origin::entry && slot.value.offset == 0 &&
          (kKeptByFunctions >> slot.value.reg & 1) && !(exit.back >> slot.value.reg & 1))
        exit.saved |= register_bit(slot.value.reg);
  }

  // --- one instruction

  Origin &at(unsigned reg, State &state) {
    return reg < 16 ? state.registers[reg] : temporaries_[reg - ASSAY_REG_TEMPORARIES];
  }
  static bool is_tracked(unsigned reg) {
    return reg < 16 || (reg >= ASSAY_REG_TEMPORARIES && reg < ASSAY_REG_LANES);
  }
  static bool is_stack(const Origin &origin) {
    return origin.kind == Origin::frame ||
           (origin.kind == Origin::entry && origin.reg == ASSAY_REG_RSP);
  }
  static Origin pointer() {
    Origin origin;
    origin.kind = Origin::pointer;
    return origin;
  }
  // No function lies at 0, so nobody jumps there: it does no harm among pointers.
  Origin read(unsigned reg, State &state) {
    return is_tracked(reg) ? at(reg, state) : reg == ASSAY_REG_ZERO ? pointer() : Origin{};
  }
  static Origin moved(Origin from, int64_t by) {
    if (from.kind == Origin::entry || from.kind == Origin::frame)
      from.offset =
          static_cast<int64_t>(static_cast<uint64_t>(from.offset) + static_cast<uint64_t>(by));
    else if (by)
      from.kind = Origin::computed;
    return from;
  }

  // a + (b << shift) + c + i
  Origin sum(const assay_uop &uop, State &state) {
    bool constant = has_immediate(uop);
    if (constant || uop.b != ASSAY_REG_ZERO || uop.c != ASSAY_REG_ZERO)
      return {};
    if (uop.a == ASSAY_REG_BIAS)
      return pointer();
    return moved(read(uop.a, state), uop.i);
  }

  // The stack pointer, moved by something that is not constant.
  Origin new_frame(uint32_t place, State &state) {
    auto is_old = [&](const Origin &origin) {
      return origin.kind == Origin::frame && origin.place == place;
    };
    for (Origin &origin : state.registers)
      if (is_old(origin))
        origin = {};
    std::erase_if(state.slots,
                  [&](const Slot &slot) { return is_old(slot.where) || is_old(slot.value); });
    Origin fresh;
    fresh.kind = Origin::frame;
    fresh.place = place;
    return fresh;
  }

  void store(const Origin &where, const Origin &value, unsigned width, State &state) {
    if (!is_stack(where))
      return;
    Origin first = where;
    first.trust = 0;
    first.offset -= 7;
    auto from = std::lower_bound(
        state.slots.begin(), state.slots.end(), first,
        [](const Slot &slot, const Origin &wanted) { return is_before(slot.where, wanted); });
    auto to = from;
    while (to != state.slots.end() && to->where.kind == where.kind && to->where.reg == where.reg &&
           to->where.place == where.place && to->where.offset < where.offset + int64_t{width})
      ++to;
    from = state.slots.erase(from, to);
    if (width != 8 || value.kind == Origin::computed || state.slots.size() >= kMaxSlots)
      return;
    while (from != state.slots.end() && is_before(from->where, where))
      ++from;
    state.slots.insert(from, {where, value});
  }

  Origin load(const Origin &where, State &state) {
    if (!is_stack(where))
      return pointer();
    Origin result;
    auto found = std::lower_bound(
        state.slots.begin(), state.slots.end(), where,
        [](const Slot &slot, const Origin &wanted) { return is_before(slot.where, wanted); });
    if (found != state.slots.end() && !is_before(where, found->where)) {
      result = found->value;
      result.trust |= where.trust;
    } else if (where.kind == Origin::entry && where.offset >= 0) {
      result = pointer(); // passed on the stack
    }
    return result;
  }

  Origin result_of(const assay_uop &uop, uint32_t place, State &state) {
    bool constant = has_immediate(uop);
    const Origin a = read(uop.a, state);
    const bool is_zero =
        !constant && uop.a == uop.b && (uop.op == ASSAY_UOP_xor || uop.op == ASSAY_UOP_sub);
    if (is_zero && uop.width >= 4)
      return pointer();
    if (uop.width != 8)
      // A constant of 32 bits may be an address of code.
      return uop.op == ASSAY_UOP_or && uop.a == ASSAY_REG_ZERO && constant ? pointer() : Origin{};
    switch (uop.op) {
    case ASSAY_UOP_copy: return a;
    case ASSAY_UOP_lea: return sum(uop, state);
    case ASSAY_UOP_add:
    case ASSAY_UOP_sub:
      if (constant)
        return moved(a, uop.op == ASSAY_UOP_add
                            ? uop.imm
                            : static_cast<int64_t>(0 - static_cast<uint64_t>(uop.imm)));
      return is_stack(a) && uop.op == ASSAY_UOP_sub ? new_frame(place, state) : Origin{};
    case ASSAY_UOP_and: return constant && is_stack(a) ? new_frame(place, state) : Origin{};
    case ASSAY_UOP_or: return constant && uop.a == ASSAY_REG_ZERO ? pointer() : Origin{};
    // Pointers of libc that are kept encoded.
    case ASSAY_UOP_xor:
      return !constant && a.is_plain() && read(uop.b, state).is_plain() ? pointer() : Origin{};
    case ASSAY_UOP_ror:
    case ASSAY_UOP_rol: return constant && a.is_plain() ? pointer() : Origin{};
    case ASSAY_UOP_select: return constant ? Origin{} : met(a, read(uop.b, state));
    default: return {};
    }
  }

  void execute(const Instruction &instruction, State &state) {
    Origin stack_pointer = state.registers[ASSAY_REG_RSP];
    auto uops = graph_.code.uops_of(instruction);
    for (uint32_t i = 0; i < uops.size(); i++) {
      const assay_uop &uop = uops[i];
      switch (uop.op) {
      case ASSAY_UOP_load: {
        Origin value = uop.width == 8 ? load(sum(uop, state), state) : Origin{};
        if (is_tracked(uop.dst))
          at(uop.dst, state) = value;
        break;
      }
      case ASSAY_UOP_store: store(sum(uop, state), read(uop.dst, state), uop.width, state); break;
      case ASSAY_UOP_jump: jumps_to_ = sum_of_jump(uop, state); break;
      case ASSAY_UOP_store_if:
      case ASSAY_UOP_branch:
      case ASSAY_UOP_opaque: break;
      default:
        if (is_tracked(uop.dst))
          at(uop.dst, state) =
              uop.op == ASSAY_UOP_load_if ? Origin{} : result_of(uop, instruction.uop + i, state);
      }
    }
    if (instruction.is_call())
      come_back(instruction, stack_pointer, state);
    if (instruction.opaque)
      for (unsigned reg = 0; reg < 16; reg++)
        if (graph_.code.touched_by(instruction).writes & bit(reg))
          state.registers[reg] = {};
  }

  Origin sum_of_jump(const assay_uop &uop, State &state) {
    return moved(read(uop.a, state), uop.i);
  }

  void come_back(const Instruction &call, const Origin &stack_pointer, State &state) {
    for (unsigned reg = 0; reg < 16; reg++) {
      if (reg == ASSAY_REG_RSP)
        continue;
      if (!(call.kept & register_bit(reg)))
        state.registers[reg] = {};
      else if (state.registers[reg].kind != Origin::computed)
        state.registers[reg].trust |= register_bit(reg);
    }
    state.registers[ASSAY_REG_RAX].kind = Origin::pointer;
    state.registers[ASSAY_REG_RSP] =
        call.kept & register_bit(ASSAY_REG_RSP) ? stack_pointer : Origin{};
    state.registers[ASSAY_REG_RSP].trust |= register_bit(ASSAY_REG_RSP);
    // What lies below the stack pointer is the callee's.
    if (is_stack(stack_pointer))
      std::erase_if(state.slots, [&](const Slot &slot) {
        return slot.where.kind == stack_pointer.kind && slot.where.reg == stack_pointer.reg &&
               slot.where.place == stack_pointer.place && slot.where.offset < stack_pointer.offset;
      });
  }

  const FlowGraph &graph_;
  State at_entry_;
  std::vector<State> before_; // by block
  std::array<Origin, ASSAY_UOP_TEMPORARIES> temporaries_;
  Origin jumps_to_;
};

} // namespace

std::vector<Exit> exits_of(const FlowGraph &graph) {
  Walk walk(graph);
  walk.run();
  return walk.exits();
}

} // namespace binary
