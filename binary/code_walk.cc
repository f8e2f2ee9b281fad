// Instructions are found by following control from the entries, never by sweeping: what is not reached
// is not code for this purpose. A sweep only serves as a witness: whether an address that a table names
// is the beginning of an instruction, and whether there is code that nothing leads to.
//
// What is known is kept in arrays by byte of the routine and by instruction, because most of the time
// of an analysis goes into looking up addresses: hash tables took twice as long.

#include "binary/code_walk.h"

#include <algorithm>
#include <string_view>

namespace binary {
namespace {

constexpr size_t kMaxInstructions = 4'000'000;

bool is_padding(const Instruction &instruction) {
  std::string_view name = mnemonic_name(instruction.mnemonic);
  return name == "nop" || name == "int3" || name == "ud2" || name == "hlt" || name == "endbr64";
}

// What is written between functions and blocks to align them, besides nop.
bool is_idle(const Code &code, const Instruction &instruction) {
  if (is_padding(instruction))
    return true;
  auto uops = code.uops_of(instruction);
  bool copies = !uops.empty() && uops.size() <= 2 &&
                std::all_of(uops.begin(), uops.end(), [](const assay_uop &uop) {
                  bool lea = uop.op == ASSAY_UOP_lea && uop.b == ASSAY_REG_ZERO &&
                             uop.c == ASSAY_REG_ZERO && uop.i == 0;
                  return (lea || uop.op == ASSAY_UOP_copy || uop.op == ASSAY_UOP_put16) &&
                         uop.width == 8 && uop.dst == uop.a;
                });
  std::string_view name = mnemonic_name(instruction.mnemonic);
  return copies || (name == "xchg" && instruction.accesses == 0);
}

} // namespace

CodeWalk::CodeWalk(const Program &of, const Routine &what, Decoder &decoder, Calls calls)
    : program(of), routine(what), decoder_(decoder), calls_(calls) {
  for (const image::CodeRange &range : routine.ranges)
    ranges_.push_back({range.begin, range.end, 0, {}});
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  uint64_t bytes = 0;
  for (Range &range : ranges_) {
    range.first = static_cast<uint32_t>(bytes);
    bytes += range.end - range.begin;
  }
  if (bytes >= kNone) {
    ranges_.clear();
    bytes = 0;
    give_up(WhyNot::too_large, routine.address());
  }
  instruction_at_.assign(bytes, kNone);
  begins_block_.assign(bytes, false);
}

void CodeWalk::give_up(WhyNot why, uint64_t address) {
  if (why_not == WhyNot::understood) {
    why_not = why;
    where = address;
  }
}

void CodeWalk::drop_code() {
  code = Code();
  ranges_.clear();
  instruction_at_ = std::vector<uint32_t>();
  end_of_ = std::vector<uint32_t>();
  ends_ = std::vector<Targets>();
}

uint32_t CodeWalk::place_of(uint64_t address) const {
  auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](uint64_t wanted, const Range &range) { return wanted < range.begin; });
  if (after == ranges_.begin() || address >= std::prev(after)->end)
    return kNone;
  return std::prev(after)->first + static_cast<uint32_t>(address - std::prev(after)->begin);
}

uint32_t CodeWalk::instruction_at(uint64_t address) const {
  uint32_t place = place_of(address);
  return place == kNone ? kNone : instruction_at_[place];
}

bool CodeWalk::begins_block(uint64_t address) const {
  uint32_t place = place_of(address);
  return place != kNone && begins_block_[place];
}

std::vector<uint64_t> CodeWalk::leaders() const {
  std::vector<uint64_t> found;
  found.reserve(static_cast<size_t>(std::count(begins_block_.begin(), begins_block_.end(), true)));
  for (const Range &range : ranges_)
    for (uint64_t at = range.begin; at < range.end; at++)
      if (uint32_t place = range.first + static_cast<uint32_t>(at - range.begin);
          begins_block_[place] && instruction_at_[place] != kNone)
        found.push_back(at);
  return found;
}

void CodeWalk::append_block(uint64_t leader, std::vector<uint32_t> &to) const {
  for (uint32_t index = instruction_at(leader); index != kNone;) {
    to.push_back(index);
    const uint64_t next = code.instructions[index].end();
    if (targets_of(index) || begins_block(next))
      break;
    index = instruction_at(next);
  }
}

const CodeWalk::Targets *CodeWalk::targets_of(uint32_t instruction) const {
  return end_of_[instruction] == kNone ? nullptr : &ends_[end_of_[instruction]];
}

std::optional<uint64_t> CodeWalk::leaves(uint32_t instruction) const {
  auto found =
      std::lower_bound(leaves_.begin(), leaves_.end(), instruction,
                       [](const auto &each, uint32_t wanted) { return each.first < wanted; });
  return found == leaves_.end() || found->first != instruction ? std::nullopt
                                                               : std::optional(found->second);
}

std::optional<uint64_t> CodeWalk::runs_on(uint32_t instruction) const {
  auto behind =
      std::upper_bound(leaves_.begin(), leaves_.end(), instruction,
                       [](uint32_t wanted, const auto &each) { return wanted < each.first; });
  bool twice = behind - leaves_.begin() >= 2 && std::prev(behind)->first == instruction &&
               std::prev(behind, 2)->first == instruction;
  return twice ? std::optional(std::prev(behind)->second) : std::nullopt;
}

CodeWalk::Targets &CodeWalk::end_at(uint32_t index) {
  if (end_of_[index] == kNone) {
    end_of_[index] = static_cast<uint32_t>(ends_.size());
    ends_.emplace_back();
  }
  return ends_[end_of_[index]];
}

bool CodeWalk::add_targets(uint32_t jump, const std::vector<uint64_t> &targets) {
  auto &known = end_at(jump);
  std::vector<uint64_t> all;
  std::set_union(known.begin(), known.end(), targets.begin(), targets.end(),
                 std::back_inserter(all));
  if (all.size() == known.size())
    return false;
  known = Targets(all.begin(), all.end());
  for (uint64_t target : targets)
    reach(target);
  return true;
}

void CodeWalk::reach(uint64_t address) {
  uint32_t place = place_of(address);
  if (place == kNone) {
    give_up(WhyNot::leaves_code, address);
  } else if (!begins_block_[place]) {
    begins_block_[place] = true;
    work_.push_back(address);
  }
}

void CodeWalk::follow() {
  while (!work_.empty()) {
    uint64_t address = work_.back();
    work_.pop_back();
    while (address && instruction_at(address) == kNone)
      address = one(address);
  }
}

// Decodes one instruction; the address of the next one if control may go on there.
uint64_t CodeWalk::one(uint64_t address) {
  uint32_t place = place_of(address);
  if (place == kNone) {
    // Assembly's way of a tail call: through the end, and what pads it, into the next function.
    if (falls_into_another(address))
      leaves_.emplace_back(static_cast<uint32_t>(code.instructions.size() - 1), address);
    else
      give_up(WhyNot::leaves_code, address);
    return 0;
  }
  if (code.instructions.size() >= kMaxInstructions) {
    give_up(WhyNot::too_large, address);
    return 0;
  }
  if (!decoder_.decode(program.executable().bytes_from(address), address, code)) {
    give_up(WhyNot::undecodable, address);
    return 0;
  }
  auto index = static_cast<uint32_t>(code.instructions.size() - 1);
  instruction_at_[place] = index;
  end_of_.push_back(kNone);
  return flow_of(index);
}

uint64_t CodeWalk::flow_of(uint32_t index) {
  Instruction &instruction = code.instructions[index];
  if (instruction.half_known)
    give_up(WhyNot::half_known, instruction.address);
  if (code.touched_by(instruction).writes & bit(kFs)) // a system call: is it arch_prctl?
    instruction.moves_fs = program.moves_fs(instruction.address);
  switch (instruction.flow) {
  case Flow::next:
    if (instruction.repeats) { // a loop of one instruction
      go(index, instruction.address);
      go(index, instruction.end());
      return 0;
    }
    return instruction.end();
  case Flow::jump:
    end_at(index);
    go(index, instruction.target());
    return 0;
  case Flow::branch:
    go(index, instruction.target());
    go(index, instruction.end());
    return 0;
  case Flow::call:
    instruction.moves_fs = program.moves_fs(instruction.target());
    if (calls_ == Calls::looked_into)
      instruction.kept = program.kept_by(instruction.target());
    return go_on_after_call(index);
  case Flow::indirect_call:
    if (calls_ == Calls::looked_into)
      instruction.kept = program.kept_by_pointers(slot_of(instruction));
    return go_on_after_call(index);
  case Flow::indirect_jump:
    end_at(index);
    indirect_jumps_.push_back(index);
    return 0;
  case Flow::ret:
  case Flow::stop: end_at(index); return 0;
  }
  return 0;
}

void CodeWalk::go(uint32_t index, uint64_t target) {
  const Instruction &instruction = code.instructions[index];
  auto &targets = end_at(index);
  bool runs_on = target == instruction.end() && instruction.flow != Flow::jump;
  if (place_of(target) != kNone) {
    targets.push_back(target);
    reach(target);
  } else if (!runs_on || falls_into_another(target)) {
    leaves_.emplace_back(index, target); // a tail call
  } else {
    give_up(WhyNot::leaves_code, target);
  }
}

// Through padding to where a function begins.
bool CodeWalk::falls_into_another(uint64_t address) const {
  for (Code padding;; address = padding.instructions.back().end()) {
    const image::CodeRange *range = program.executable().function_at(address);
    if (range)
      return range->begin == address;
    if (!decoder_.decode(program.executable().bytes_from(address), address, padding) ||
        mnemonic_name(padding.instructions.back().mnemonic) != std::string_view("nop"))
      return false;
  }
}

uint64_t CodeWalk::go_on_after_call(uint32_t index) {
  const Instruction &instruction = code.instructions[index];
  uint64_t next = instruction.end();
  auto pad = landing_pad_of(instruction.address);
  bool returns = instruction.flow == Flow::call
                     ? !program.never_returns(instruction.target())
                     : !program.never_returns_through(slot_of(instruction).value_or(0));
  // A call at the very end comes back nowhere, whatever is known of whom it calls.
  returns = returns && place_of(next) != kNone;
  if (returns && !pad)
    return next;
  end_at(index);
  if (returns)
    go(index, next);
  if (pad)
    go(index, *pad);
  return 0;
}

// call [rip+slot]
std::optional<uint64_t> CodeWalk::slot_of(const Instruction &call) const {
  for (const Access &access : code.accesses_of(call)) {
    if (!access.has_address() || access.write)
      continue;
    const assay_uop &uop = code.uops[access.uop];
    if (uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO)
      return static_cast<uint64_t>(int64_t{uop.i});
  }
  return std::nullopt;
}

std::optional<uint64_t> CodeWalk::landing_pad_of(uint64_t call) const {
  const auto &all = program.executable().landing_pads();
  auto after = std::upper_bound(
      all.begin(), all.end(), call,
      [](uint64_t address, const image::LandingPad &pad) { return address < pad.call_begin; });
  if (after == all.begin())
    return std::nullopt;
  const image::LandingPad &pad = *std::prev(after);
  return call < pad.call_end && place_of(pad.pad) != kNone ? std::optional(pad.pad) : std::nullopt;
}

bool CodeWalk::may_begin_instruction(uint64_t address) {
  if (instruction_at(address) != kNone)
    return true;
  for (Range &range : ranges_) {
    if (address < range.begin || address >= range.end)
      continue;
    if (range.begins.empty()) {
      range.begins.resize(range.end - range.begin);
      Code swept;
      for (uint64_t at = range.begin; at < range.end;) {
        const uint32_t known = instruction_at(at);
        swept.clear();
        if (known == kNone && !decoder_.decode(program.executable().bytes_from(at), at, swept))
          break;
        range.begins[at - range.begin] = true;
        at = known == kNone ? swept.instructions.front().end() : code.instructions[known].end();
      }
    }
    return range.begins[address - range.begin];
  }
  return false;
}

// Where a call that never returns has a landing pad, compilers go on to a trap.
bool CodeWalk::goes_to_trap(const Instruction &instruction) const {
  Code there;
  return instruction.flow == Flow::jump && place_of(instruction.target()) != kNone &&
         decoder_.decode(program.executable().bytes_from(instruction.target()),
                         instruction.target(), there) &&
         mnemonic_name(there.instructions.front().mnemonic) == std::string_view("ud2");
}

std::optional<uint64_t> CodeWalk::unreached() {
  Code between;
  for (const Range &range : ranges_)
    for (uint64_t at = range.begin; at < range.end;) {
      uint32_t known = instruction_at(at);
      if (known != kNone) {
        at = code.instructions[known].end();
        continue;
      }
      between.clear();
      if (!decoder_.decode(program.executable().bytes_from(at), at, between) ||
          !(is_idle(between, between.instructions.front()) ||
            goes_to_trap(between.instructions.front())))
        return at;
      at = between.instructions.front().end();
    }
  return std::nullopt;
}

} // namespace binary
