// Unwinding needs tables, and neither the kernel's program nor a handler can read them. But which
// register the return address is found by depends on the instruction alone: so it is looked up
// once, when the instruction is published, as everything else is.
//
// Call frame instructions are executed from the begin of their range up to the address. Only the
// frame and the place of the return address are followed; rules of other registers are read over.
// What is not understood yields no caller. Refused: to guess at frame pointers; a register that is
// used for something else would give a wrong caller silently (decision 032).
//
// Source: DWARF 5, section 6.4.2, "Call Frame Instructions".

#include "values/caller_rules.h"

#include "abi/uop.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace values {
namespace {

constexpr uint64_t kReturnRegister = 16;
// DW_CFA_*, of which the upper three hold an operand in their low six bits.
enum : uint8_t {
  kAdvance = 0x40,
  kOffset = 0x80,
  kRestore = 0xc0,
  kNop = 0,
  kSetLocation,
  kAdvance1,
  kAdvance2,
  kAdvance4,
  kOffsetExtended,
  kRestoreExtended,
  kUndefined,
  kSameValue,
  kRegister,
  kRememberState,
  kRestoreState,
  kDefineFrame,
  kDefineFrameRegister,
  kDefineFrameOffset,
  kDefineFrameExpression,
  kExpression,
  kOffsetExtendedSigned,
  kDefineFrameSigned,
  kDefineFrameOffsetSigned,
  kValueOffset,
  kValueOffsetSigned,
  kValueExpression,
  kArgumentsSize = 0x2e,
};

// Register numbers of DWARF on x86-64.
constexpr uint16_t kRegisters[16] = {ASSAY_REG_RAX,
                                     ASSAY_REG_RDX,
                                     ASSAY_REG_RCX,
                                     ASSAY_REG_RBX,
                                     ASSAY_REG_RSI,
                                     ASSAY_REG_RDI,
                                     ASSAY_REG_RBP,
                                     ASSAY_REG_RSP,
                                     8,
                                     9,
                                     10,
                                     11,
                                     12,
                                     13,
                                     14,
                                     15};

struct State {
  uint64_t reg = 0;
  int64_t offset = 0;
  bool is_known = false;        // the frame is a register and an offset
  int64_t return_offset = 0;    // of the return address, from the frame
  bool is_return_known = false; // it lies in memory there
};

// Executes call frame instructions up to one place in the code.
class Machine {
public:
  Machine(const image::UnwindCommon &common, uint64_t begin, uint64_t wanted)
      : common_(common), location_(begin), wanted_(wanted) {}

  // False if there is something that is not understood.
  bool run(std::span<const std::byte> bytes) {
    bytes_ = bytes;
    while (!bytes_.empty() && location_ <= wanted_)
      if (!step())
        return false;
    return true;
  }
  void keep_initial() { initial_ = state_; }
  const State &state() const { return state_; }

private:
  uint64_t fixed(size_t size) {
    uint64_t value = 0;
    if (bytes_.size() < size) {
      bytes_ = {};
      return 0;
    }
    std::memcpy(&value, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  uint64_t number() { // ULEB128
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const uint64_t byte = fixed(1);
      value |= (byte & 127) << shift;
      if (!(byte & 128))
        break;
    }
    return value;
  }
  int64_t signed_number() { // SLEB128
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty();) {
      const uint64_t byte = fixed(1);
      value |= (byte & 127) << shift;
      shift += 7;
      if (!(byte & 128)) {
        if (byte & 64 && shift < 64)
          value |= ~uint64_t{0} << shift;
        break;
      }
    }
    return static_cast<int64_t>(value);
  }
  void skip_block() {
    const uint64_t size = number();
    bytes_ = bytes_.subspan(std::min<uint64_t>(size, bytes_.size()));
  }

  // What comes behind is of later code.
  void advance(uint64_t by) { location_ += by * common_.code_alignment; }
  void saved(uint64_t reg, int64_t offset) {
    if (reg == kReturnRegister) {
      state_.return_offset = offset;
      state_.is_return_known = true;
    }
  }
  void restored(uint64_t reg) {
    if (reg == kReturnRegister) {
      state_.return_offset = initial_.return_offset;
      state_.is_return_known = initial_.is_return_known;
    }
  }
  void lost(uint64_t reg) {
    if (reg == kReturnRegister)
      state_.is_return_known = false;
  }
  void frame(uint64_t reg, int64_t offset) {
    state_.reg = reg;
    state_.offset = offset;
    state_.is_known = true;
  }
  bool rules_of_registers(uint64_t code) {
    const int64_t unit = common_.data_alignment;
    switch (code) {
    case kOffsetExtended: {
      const uint64_t reg = number();
      saved(reg, static_cast<int64_t>(number()) * unit);
      return true;
    }
    case kOffsetExtendedSigned: {
      const uint64_t reg = number();
      saved(reg, signed_number() * unit);
      return true;
    }
    case kRestoreExtended: restored(number()); return true;
    case kUndefined:
    case kSameValue: lost(number()); return true;
    case kRegister:
    case kValueOffset: lost(number()), number(); return true;
    case kValueOffsetSigned: lost(number()), signed_number(); return true;
    case kExpression:
    case kValueExpression: lost(number()), skip_block(); return true;
    default: return false;
    }
  }
  bool step() {
    const int64_t unit = common_.data_alignment;
    const uint64_t code = fixed(1), operand = code & 63;
    switch (code & 0xc0) {
    case kAdvance: advance(operand); return true;
    case kOffset: saved(operand, static_cast<int64_t>(number()) * unit); return true;
    case kRestore: restored(operand); return true;
    default: break;
    }
    switch (code) {
    case kNop: return true;
    case kAdvance1: advance(fixed(1)); return true;
    case kAdvance2: advance(fixed(2)); return true;
    case kAdvance4: advance(fixed(4)); return true;
    case kRememberState: kept_.push_back(state_); return true;
    case kRestoreState:
      if (kept_.empty())
        return false;
      state_ = kept_.back();
      kept_.pop_back();
      return true;
    case kDefineFrame: {
      const uint64_t reg = number();
      frame(reg, static_cast<int64_t>(number()));
      return true;
    }
    case kDefineFrameSigned: {
      const uint64_t reg = number();
      frame(reg, signed_number() * unit);
      return true;
    }
    case kDefineFrameRegister: state_.reg = number(); return true;
    case kDefineFrameOffset: state_.offset = static_cast<int64_t>(number()); return true;
    case kDefineFrameOffsetSigned: state_.offset = signed_number() * unit; return true;
    case kDefineFrameExpression: state_.is_known = false, skip_block(); return true;
    case kArgumentsSize: number(); return true;
    default: return rules_of_registers(code);
    }
  }

  const image::UnwindCommon &common_;
  std::span<const std::byte> bytes_;
  uint64_t location_, wanted_;
  State state_, initial_;
  std::vector<State> kept_;
};

} // namespace

CallerRules::CallerRules(const image::Executable &executable) {
  for (const image::UnwindRange &range : executable.unwind_ranges())
    if (range.common && !range.common->is_signal &&
        range.common->return_register == kReturnRegister)
      ranges_.push_back(&range);
  std::sort(ranges_.begin(), ranges_.end(),
            [](const auto *a, const auto *b) { return a->begin < b->begin; });
}

std::optional<CallerRule> CallerRules::at(uint64_t address) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](uint64_t a, const auto *range) { return a < range->begin; });
  if (after == ranges_.begin() || address >= (*std::prev(after))->end)
    return std::nullopt;
  const image::UnwindRange &range = **std::prev(after);
  Machine machine(*range.common, range.begin, address);
  if (!machine.run(range.common->instructions))
    return std::nullopt;
  machine.keep_initial();
  if (!machine.run(range.instructions))
    return std::nullopt;
  const State &state = machine.state();
  const int64_t offset = state.offset + state.return_offset;
  if (!state.is_known || !state.is_return_known || state.reg >= std::size(kRegisters) ||
      offset != static_cast<int32_t>(offset))
    return std::nullopt;
  return CallerRule{kRegisters[state.reg], static_cast<int32_t>(offset)};
}

} // namespace values
