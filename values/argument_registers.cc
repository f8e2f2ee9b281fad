// Code says which registers it reads, not which it was given. So what reads without asking for the
// value must be told apart, or a function has arguments that nobody passed: `setcc cl` and `mov cl,
// 1` keep the rest of rcx; `xor ecx, ecx` and `bsr ecx, edi` name it as an operand; `push rcx`
// makes room on the stack; `syscall` reads six, and the kernel as many as the call's number says.
//
// A variadic function stores the registers that may hold arguments to an area of which register i
// has the place base + 8 * i (System V ABI, AMD64, 3.5.7, "Register Save Area"). Other functions
// put arguments side by side, too, so that alone says nothing: a variadic function also reads al,
// which says how many vector registers were used; or stores up to r9, the last one; or sets up a
// va_list: gp_offset = 8 * the first of these registers, and two pointers behind it.
//
// Refused: sets of bytes for each register. Where a part is written first, the rest that is read
// afterwards is mostly what compilers know to be without effect (`setg cl; or eax, ecx; movzx edx,
// al`), so such a register is no argument.

#include "values/argument_registers.h"

#include "binary/effects.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace values {

const binary::RegisterSet kArgumentRegisters = static_cast<binary::RegisterSet>(
    binary::register_bit(ASSAY_REG_RDI) | binary::register_bit(ASSAY_REG_RSI) |
    binary::register_bit(ASSAY_REG_RDX) | binary::register_bit(ASSAY_REG_RCX) |
    binary::register_bit(ASSAY_REG_R8) | binary::register_bit(9));

bool forgets_operand(const assay_uop &uop) {
  if (uop.a != uop.b)
    return false;
  switch (uop.op) {
  case ASSAY_UOP_xor:
  case ASSAY_UOP_sub:
  case ASSAY_UOP_sub_borrow:
  case ASSAY_UOP_and_not:
  case ASSAY_UOP_flags_sub:
  case ASSAY_UOP_flags_sub_borrow:
  case ASSAY_UOP_lane_sub:
  case ASSAY_UOP_lane_equal:
  case ASSAY_UOP_lane_greater:
  case ASSAY_UOP_lane_below: return true;
  default: return false;
  }
}

namespace {

using binary::Code;
using binary::Flow;
using binary::Instruction;
using binary::RegisterSet;

constexpr std::array<unsigned, 6> kOrder = {ASSAY_REG_RDI, ASSAY_REG_RSI, ASSAY_REG_RDX,
                                            ASSAY_REG_RCX, ASSAY_REG_R8,  9};

bool is_put(const assay_uop &uop) {
  return uop.op == ASSAY_UOP_put8 || uop.op == ASSAY_UOP_put8h || uop.op == ASSAY_UOP_put16;
}

bool is_all_ones(const assay_uop &uop) {
  return uop.op == ASSAY_UOP_or && binary::has_immediate(uop) && uop.imm == -1;
}

class ArgumentReads {
public:
  void add(const Code &code, const Instruction &instruction) {
    const std::string_view name = binary::mnemonic_name(instruction.mnemonic);
    if (name == "push" || take_store(code, instruction))
      return;
    RegisterSet reads = 0, writes = 0;
    for (const assay_uop &uop : code.uops_of(instruction)) {
      const bool forgets = forgets_operand(uop) || is_all_ones(uop);
      if (!(forgets || (is_put(uop) && uop.a == uop.dst)))
        reads |= bit_of(uop.a) & ~writes;
      if (!forgets && !binary::has_immediate(uop))
        reads |= static_cast<RegisterSet>((bit_of(uop.b) | bit_of(uop.c)) & ~writes);
      if (binary::writes_memory(uop))
        reads |= bit_of(uop.dst) & ~writes;
      else if (binary::has_result(uop))
        writes |= bit_of(uop.dst);
    }
    if (instruction.opaque) {
      const binary::Touched touched = code.touched_by(instruction);
      RegisterSet touched_reads = static_cast<RegisterSet>(touched.reads);
      if (name == "syscall")
        touched_reads &= static_cast<RegisterSet>(~kArgumentRegisters);
      reads |= touched_reads & ~writes;
      writes |= static_cast<RegisterSet>(touched.writes);
    }
    if (name == "bsf" || name == "bsr") // the old value stays where there is no bit
      reads &= ~writes;
    read_ |= reads & ~written_;
    written_ |= writes;
  }

  RegisterSet arguments() const {
    RegisterSet read = read_;
    for (const auto &[base, saved] : saves_)
      if (!is_save_area(base, saved))
        for (unsigned i : saved)
          read |= binary::register_bit(kOrder[i]);
    return read & kArgumentRegisters;
  }

private:
  using Place = std::pair<unsigned, int32_t>; // a register, an offset from it

  static RegisterSet bit_of(unsigned reg) {
    return reg <= ASSAY_REG_R15 ? binary::register_bit(reg) : RegisterSet{0};
  }

  // What is stored to the stack as it is: whether it is passed on, or saved, is known when all has been seen.
  bool take_store(const Code &code, const Instruction &instruction) {
    const auto uops = code.uops_of(instruction);
    if (uops.empty() || uops.back().op != ASSAY_UOP_store || uops.size() > 2)
      return false;
    const assay_uop &store = uops.back();
    if ((store.a != ASSAY_REG_RSP && store.a != ASSAY_REG_RBP) || store.b != ASSAY_REG_ZERO ||
        store.c != ASSAY_REG_ZERO)
      return false;
    const Place at{store.a, store.i};
    if (uops.size() == 2) {
      const assay_uop &made = uops.front();
      if (store.width == 4 && made.op == ASSAY_UOP_or && made.a == ASSAY_REG_ZERO &&
          binary::has_immediate(made) && made.dst == store.dst)
        numbers_[at] = made.imm;
      return false;
    }
    if (store.width == 4 && store.dst == ASSAY_REG_ZERO)
      numbers_[at] = 0;
    if (store.width != 8)
      return false;
    pointers_.push_back(at);
    const auto found = std::ranges::find(kOrder, unsigned{store.dst});
    if (found == kOrder.end() || (written_ & binary::register_bit(store.dst)))
      return false;
    const auto index = static_cast<unsigned>(found - kOrder.begin());
    saves_[{store.a, store.i - static_cast<int32_t>(8 * index)}].push_back(index);
    return true;
  }

  bool is_save_area(const Place &base, const std::vector<unsigned> &saved) const {
    const bool has_last = std::ranges::find(saved, 5u) != saved.end(), has_some = saved.size() > 1;
    const bool reads_al = read_ & binary::register_bit(ASSAY_REG_RAX);
    if (reads_al ? has_some || has_last : has_some && has_last)
      return true;
    const int64_t first = 8 * int64_t{*std::ranges::min_element(saved)};
    auto has_pointer = [&](unsigned reg, int32_t offset) {
      return std::ranges::find(pointers_, Place{reg, offset}) != pointers_.end();
    };
    return std::ranges::any_of(numbers_, [&](const auto &number) {
      const auto &[reg, offset] = number.first;
      return reg == base.first && number.second == first && has_pointer(reg, offset + 8) &&
             has_pointer(reg, offset + 16);
    });
  }

  RegisterSet read_ = 0, written_ = 0;
  std::map<Place, std::vector<unsigned>> saves_; // by where rdi would be: numbers of arguments
  std::map<Place, int64_t> numbers_;             // four bytes that are a constant
  std::vector<Place> pointers_;                  // eight bytes of a register
};

} // namespace

RegisterSet argument_registers(binary::Decoder &decoder, std::span<const std::byte> code,
                               uint64_t address) {
  ArgumentReads reads;
  Code decoded;
  for (unsigned i = 0; i < 64 && !code.empty(); i++) {
    decoded.clear();
    if (!decoder.decode(code, address, decoded))
      break;
    const Instruction &instruction = decoded.instructions.front();
    if (instruction.is_call() || instruction.flow == Flow::ret || instruction.flow == Flow::stop ||
        instruction.flow == Flow::jump || instruction.flow == Flow::indirect_jump)
      break;
    reads.add(decoded, instruction);
    code = code.subspan(std::min<size_t>(instruction.length, code.size()));
    address = instruction.end();
  }
  return reads.arguments();
}

} // namespace values
