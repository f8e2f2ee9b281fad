// A snippet needs a register for the position in the buffer, sometimes one for an address. They are
// such as nobody reads before writing them; where there is none, one is kept in thread-local
// storage meanwhile. Snippets leave the flags alone; a check stands where they hold nothing, or
// saves them.

#include "trace/log_snippets.h"

#include "binary/effects.h"
#include "trace/operand_address.h"
#include "trace/position_registers.h"

#include <bit>
#include <cstddef>

namespace trace {
namespace {

using binary::Access;
using binary::Block;
using binary::Instruction;
using binary::RegisterSet;

constexpr unsigned kAboveOrEqual = 3, kEqual = 4, kNotEqual = 5;
constexpr int32_t kRaxOfProgram = offsetof(AssayThreadLog, rax);

constexpr RegisterSet kCallerSaved = 0x0fc7; // rax, rcx, rdx, rsi, rdi, r8 to r11

constexpr int32_t position_of(uint32_t log) {
  return static_cast<int32_t>(log * sizeof(AssayLogPosition));
}
constexpr int32_t limit_of(uint32_t log, bool is_start) {
  return position_of(log) + static_cast<int32_t>(is_start ? offsetof(AssayLogPosition, start_limit)
                                                          : offsetof(AssayLogPosition, limit));
}
constexpr int32_t spill_of(uint32_t which) {
  return static_cast<int32_t>(offsetof(AssayThreadLog, spilled) + 8 * which);
}

// Registers that an instruction reads before it writes them.
RegisterSet read_by(const binary::Code &code, const Instruction &instruction) {
  return static_cast<RegisterSet>(binary::effects_of(code, instruction).reads & 0xffff);
}
// Registers that an instruction reads or writes in any way.
RegisterSet touched_by(const binary::Code &code, const Instruction &instruction) {
  const binary::Effects effects = binary::effects_of(code, instruction);
  return static_cast<RegisterSet>((effects.reads | effects.writes) & 0xffff);
}

RegisterSet scratch_of(LogSnippets::Live live) {
  return static_cast<RegisterSet>(~live & 0xffff & ~kFrameRegisters);
}

} // namespace

void LogSnippets::hold(std::optional<Gpr> wanted) {
  if (!wanted || wanted == holder_[0])
    return;
  if (holder_[0])
    code_.copy(*wanted, *holder_[0]);
  else
    load_log(*wanted, position_of(0));
  holder_[0] = wanted;
}

void LogSnippets::expect(uint64_t address) {
  log_fixup(code_.compare_fs(kBetween, position_of(0)));
  const uint32_t jump = code_.jump_if(kNotEqual);
  expected_.push_back({address, jump, code_.size()});
  holder_[0] = kBetween;
}

void LogSnippets::drop_holders(RegisterSet written, bool all) {
  for (auto &holder : holder_)
    if (holder && (all || (written & binary::register_bit(*holder))))
      holder.reset();
}

RegisterSet LogSnippets::held() const {
  RegisterSet held = 0;
  for (const auto &holder : holder_)
    if (holder)
      held |= binary::register_bit(*holder);
  return held;
}

// Of these, one that the block goes on longest without touching.
Gpr LogSnippets::longest_unused(RegisterSet candidates, const Block &block, uint32_t from) const {
  constexpr uint32_t kFar = 32;
  for (uint32_t i = from; i < block.first + block.count && i < from + kFar; i++) {
    const RegisterSet left = static_cast<RegisterSet>(
        candidates & ~touched_by(graph_.code, graph_.code.instructions[i]));
    if (!left)
      break;
    candidates = left;
  }
  constexpr RegisterSet kPreferred = binary::register_bit(kBetween);
  return candidates & kPreferred ? kBetween : static_cast<Gpr>(std::countr_zero(candidates));
}

LogSnippets::Scratch LogSnippets::take(RegisterSet dead, RegisterSet used, uint32_t spill,
                                       const Block &block, uint32_t index) {
  const auto free = static_cast<RegisterSet>(dead & ~used);
  if (free)
    return {longest_unused(free, block, index), std::nullopt};
  const auto other = static_cast<RegisterSet>(~used & ~kFrameRegisters & 0xffff);
  // Unwinders need those that callees keep.
  const auto better = static_cast<RegisterSet>(other & kCallerSaved);
  const auto reg = static_cast<Gpr>(std::countr_zero(better ? better : other));
  store_log(reg, spill_of(spill));
  return {reg, spill};
}

void LogSnippets::give_back(const Scratch &scratch) {
  if (scratch.spill)
    load_log(scratch.reg, spill_of(*scratch.spill));
}

LogSnippets::Scratch LogSnippets::take_position(uint32_t log, RegisterSet used, Live live,
                                                const Block &block, uint32_t index) {
  if (holder_[log])
    return {*holder_[log], std::nullopt};
  const Scratch position = take(scratch_of(live), used | held(), log, block, index);
  load_log(position.reg, position_of(log));
  return position;
}

void LogSnippets::release_position(uint32_t log, const Scratch &position) {
  if (position.spill)
    give_back(position);
  else
    holder_[log] = position.reg;
}

void LogSnippets::advance(uint32_t log, const Scratch &position, uint32_t bytes, bool settles) {
  pending_[log] += bytes;
  if (settles)
    settle(log, position);
}

void LogSnippets::settle(uint32_t log, const Scratch &position) {
  code_.lea(position.reg, position.reg, static_cast<int32_t>(pending_[log]));
  store_log(position.reg, position_of(log));
  pending_[log] = 0;
}

void LogSnippets::settle(Live live, const Block &block, uint32_t index) {
  for (uint32_t log : module_.logs()) {
    if (!pending_[log])
      continue;
    const Scratch position = take_position(log, 0, live, block, index);
    settle(log, position);
    release_position(log, position);
  }
}

void LogSnippets::log(const LogAction &action, Live live, const Block &block, uint32_t index,
                      bool settles) {
  const auto begin = static_cast<int32_t>(pending_[action.log]);
  RegisterSet used = held(); // and what is logged here
  for (uint32_t v = action.first_value; v < action.first_value + action.values; v++) {
    const GroupValue &value = action.group->values[v];
    used |= value.access == Access::kNoAddress
                ? binary::register_bit(value.reg)
                : read_by(graph_.code, graph_.code.instructions[index]);
  }
  const Scratch position = take_position(action.log, used, live, block, index);
  used |= binary::register_bit(position.reg);
  for (uint32_t v = action.first_value; v < action.first_value + action.values; v++) {
    const GroupValue &value = action.group->values[v];
    const int32_t at = begin + 4 + 8 * static_cast<int32_t>(v);
    if (value.access == Access::kNoAddress && !value.saved) {
      code_.store(position.reg, at, value.reg);
      continue;
    }
    const Scratch address = take(scratch_of(live), used, 2, block, index);
    if (value.saved)
      load_log(address.reg, static_cast<int32_t>(offsetof(AssayThreadLog, before_loop)));
    else
      emit_address(module_, graph_.code, graph_.code.instructions[index], value.access,
                   address.reg);
    code_.store(position.reg, at, address.reg);
    give_back(address);
  }
  if (action.commit) {
    auto &where = action.log == 0 ? module_.group_fixups : module_.single_fixups;
    where.push_back(code_.store_constant(position.reg, begin, action.number + 1));
    advance(action.log, position, action.group->bytes(), settles);
  }
  release_position(action.log, position);
}

void LogSnippets::log_points(const PlanStretch &stretch, uint32_t first_start, Live live,
                             const Block &block, uint32_t index, bool settles) {
  RegisterSet used = 0;
  bool any = false;
  for (const PlanPoint &point : stretch.points)
    if (point.before == index) {
      any = true;
      used |= point.logged_register();
    }
  if (!any)
    return;
  const Scratch position = take_position(0, used, live, block, index);
  const auto begin = static_cast<int32_t>(pending_[0]);
  std::optional<uint32_t> start;
  for (const PlanPoint &point : stretch.points)
    if (point.before == index) {
      const int32_t at = begin + static_cast<int32_t>(point.offset);
      if (point.kind == PlanPoint::Kind::start)
        start = first_start + *stretch.start;
      else if (point.kind == PlanPoint::Kind::branch)
        code_.store_condition(position.reg, at, condition_of(graph_.code.instructions[index]));
      else
        code_.store_low(position.reg, at, point.reg, point.bytes);
    }
  if (start) // last: that it is there says that its values are
    module_.group_fixups.push_back(code_.store_constant(position.reg, begin, *start + 1));
  if (stretch.points.back().before == index)
    advance(0, position, stretch.bytes, settles);
  release_position(0, position);
}

unsigned LogSnippets::condition_of(const Instruction &branch) const {
  DecodedInstruction decoded;
  module_.decoder.decode(module_.program.executable().bytes(branch.address, branch.length),
                         decoded);
  return decoded.info.opcode & 15;
}

void LogSnippets::log_arrival(uint16_t number, Live live, const Block &block) {
  const Scratch position = take_position(0, 0, live, block, block.first);
  code_.store_word(position.reg, 0, number);
  advance(0, position, 2, true);
  give_back(position);
}

void LogSnippets::save_counter(Gpr counter) {
  store_log(counter, static_cast<int32_t>(offsetof(AssayThreadLog, before_loop)));
}

void LogSnippets::save_flags(KeptFlags kept) {
  if (kept.has_rax)
    store_log(kRax, kRaxOfProgram);
  if (kept.has_flags)
    code_.flags_to_rax();
}

void LogSnippets::restore_flags(KeptFlags kept) {
  if (kept.has_flags)
    code_.flags_from_rax();
  if (kept.has_rax)
    load_log(kRax, kRaxOfProgram);
}

// Without the stack: whoever unwinds it from within finds it as the program left it.
void LogSnippets::call(uint32_t slot) {
  store_log(kRax, kRaxOfProgram);
  const uint32_t back = code_.address(kRax);
  code_.land(code_.jump_to_slot(), slot * 8);
  code_.land(back, code_.size());
  load_log(kRax, kRaxOfProgram);
}

void LogSnippets::begun(Live live, uint64_t address) {
  const bool has_flags = live & binary::bit(binary::kFlags);
  const KeptFlags kept = {has_flags, has_flags};
  save_flags(kept);
  if (has_flags)
    log_fixup(code_.is_zero_fs(kRaxOfProgram));
  else
    code_.append({0x85, 0xc0}); // test eax, eax
  const uint32_t jump = code_.jump_if(kEqual);
  restore_flags(kept);
  begun_.push_back({address, jump, code_.size(), kept});
}

void LogSnippets::before_call() {
  call(ASSAY_MOVED_SLOT_before_call);
}

void LogSnippets::act() {
  call(ASSAY_MOVED_SLOT_act);
  drop_holders(0, true);
}

void LogSnippets::check(const Block &block, uint32_t index, Live live, uint32_t slot) {
  constexpr RegisterSet kRaxAlone = 1u << kRax;
  settle(live, block, index);
  const bool has_flags = live & binary::bit(binary::kFlags);
  for (uint32_t log : module_.logs()) {
    const RegisterSet used = has_flags ? kRaxAlone : 0;
    const KeptFlags kept = {has_flags,
                            has_flags && (!(scratch_of(live) & kRaxAlone) || held() & kRaxAlone)};
    const bool is_held = holder_[log] && !(has_flags && holder_[log] == kRax);
    const Scratch position = is_held ? Scratch{*holder_[log], std::nullopt}
                                     : take(scratch_of(live), held() | used, log, block, index);
    save_flags(kept);
    if (!is_held)
      load_log(position.reg, position_of(log));
    log_fixup(code_.compare_fs(position.reg, limit_of(log, slot == ASSAY_MOVED_SLOT_check)));
    slow_.push_back({graph_.code.instructions[index].address, slot, code_.jump_if(kAboveOrEqual), 0,
                     log, position, kept});
    restore_flags(kept);
    release_position(log, position);
    slow_.back().back = code_.size();
  }
  // The slow path of the second loads its own register: the first one's is not what it was.
  if (module_.logs().size() > 1)
    holder_[0].reset();
}

void LogSnippets::slow_path(const SlowPath &slow) {
  code_.land(slow.jump, code_.size());
  restore_flags(slow.kept);
  give_back(slow.position);
  call(slow.slot);
  if (!slow.position.spill)
    load_log(slow.position.reg, position_of(slow.log));
  code_.land(code_.jump(), slow.back);
}

void LogSnippets::begun_path(const BegunPath &path) {
  code_.land(path.jump, code_.size());
  restore_flags(path.kept);
  call(ASSAY_MOVED_SLOT_begun);
  code_.land(code_.jump(), path.back);
}

void LogSnippets::expected_path(const Expected &path) {
  code_.land(path.jump, code_.size());
  load_log(kBetween, position_of(0));
  code_.land(code_.jump(), path.back);
}

} // namespace trace
