// What an interpreter without floating point cannot compute becomes a register that is not known;
// then everything else of the instruction can stay as it is. Ending a sample at each such
// instruction was refused: a quarter of a program's instructions may be floating point, and few
// jumps depend on them. Only what has an unknown effect on memory or control ends a sample.
//
// What is recorded is decided here once, and not in each sample. A constant says nothing, and what
// was loaded is recorded as such: so it is found first which micro-ops yield a constant and which
// what was loaded.

#include "values/publish.h"

#include "binary/effects.h"
#include "values/argument_registers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

namespace values {
namespace {

using binary::Access;
using binary::Code;
using binary::Flow;
using binary::Instruction;

bool is_general(unsigned reg) {
  return reg <= ASSAY_REG_R15;
}

class Publisher {
public:
  Publisher(const Code &code, const Instruction &instruction, Kinds kinds,
            const image::Executable *file, std::vector<assay_uop> &entries)
      : code_(code), instruction_(instruction), kinds_(kinds), file_(file), entries_(entries) {}

  void entry(binary::RegisterSet arguments) {
    uint64_t what = wants(ASSAY_VALUE_argument) ? arguments & kArgumentRegisters : 0;
    if (wants(ASSAY_VALUE_caller))
      what |= 1 << 16;
    if (what)
      special(ASSAY_PUBLISHED_ENTRY, 8, 0).imm = static_cast<int64_t>(what);
  }

  void caller(const CallerRule &rule) {
    assay_uop &uop = special(ASSAY_PUBLISHED_CALLER, 8, 0);
    uop.a = rule.reg;
    uop.i = rule.offset;
  }

  void body() {
    trace_values();
    for (uint32_t i = 0; i < instruction_.uops; i++) {
      const uint32_t index = instruction_.uop + i;
      const assay_uop &uop = code_.uops[index];
      before(index, uop);
      if (uop.op == ASSAY_UOP_opaque) {
        opaque();
        return;
      }
      micro_op(uop);
      after(index, uop);
    }
    results();
  }

private:
  bool wants(unsigned kind) const { return kinds_ & kind_bit(kind); }

  assay_uop &special(assay_published_code op, unsigned width, unsigned dst) {
    assay_uop uop = {};
    uop.op = static_cast<uint8_t>(op);
    uop.width = static_cast<uint8_t>(width);
    uop.dst = static_cast<uint16_t>(dst);
    uop.a = uop.b = uop.c = ASSAY_REG_ZERO;
    entries_.push_back(uop);
    return entries_.back();
  }

  void value(unsigned kind, unsigned detail, unsigned reg) {
    if (wants(kind))
      special(ASSAY_PUBLISHED_VALUE, detail, reg).i = static_cast<int32_t>(kind);
  }

  const Access *access_at(uint32_t uop) const {
    for (const Access &access : code_.accesses_of(instruction_))
      if (access.uop == uop)
        return &access;
    return nullptr;
  }

  // Which micro-ops yield what is the same in every execution, or what was just loaded: of neither
  // is a result recorded.
  void trace_values() {
    std::array<Source, ASSAY_REG_COUNT> source{};
    source[ASSAY_REG_ZERO] = source[ASSAY_REG_BIAS] = Source::constant;
    sources_.clear();
    for (const assay_uop &uop : code_.uops_of(instruction_)) {
      const Source a = source[uop.a];
      const Source b = binary::has_immediate(uop) ? Source::constant : source[uop.b];
      const Source c = binary::has_immediate(uop) ? Source::constant : source[uop.c];
      Source made = Source::computed;
      if (binary::reads_memory(uop))
        made = Source::loaded;
      else if (forgets_operand(uop) ||
               (a == Source::constant && b == Source::constant && c == Source::constant))
        made = Source::constant;
      else if (uop.op == ASSAY_UOP_copy && uop.b == ASSAY_REG_ZERO)
        made = a;
      sources_.push_back(made);
      if (binary::has_result(uop) && uop.dst < ASSAY_REG_COUNT)
        source[uop.dst] = made;
    }
  }

  // Constants of the file, and addresses of other files that the loader puts there.
  bool is_constant_memory(const assay_uop &uop) const {
    if (!file_ || uop.op != ASSAY_UOP_load || uop.a != ASSAY_REG_BIAS || uop.b != ASSAY_REG_ZERO ||
        uop.c != ASSAY_REG_ZERO)
      return false;
    const auto address = static_cast<uint64_t>(int64_t{uop.i});
    return !file_->writable_at(address) || !file_->import_of_slot(address).empty();
  }

  // An address is recorded before memory is accessed: the load may change the register that it is in.
  void before(uint32_t index, const assay_uop &uop) {
    if (uop.op == ASSAY_UOP_branch)
      value(ASSAY_VALUE_branch, 1, uop.b);
    if (uop.op == ASSAY_UOP_jump &&
        (instruction_.flow == Flow::indirect_jump || instruction_.flow == Flow::indirect_call))
      value(ASSAY_VALUE_target, 8, uop.a);
    if ((uop.op == ASSAY_UOP_div || uop.op == ASSAY_UOP_div_signed) && !binary::has_immediate(uop))
      value(ASSAY_VALUE_divisor, uop.width, uop.c);
    const Access *access = access_at(index);
    if (!access || !(binary::reads_memory(uop) || binary::writes_memory(uop)) ||
        !wants(access->write ? ASSAY_VALUE_store_address : ASSAY_VALUE_load_address))
      return;
    // Where the stack and the program lie is chance, and an address that is a constant has no stride.
    const bool is_constant = (uop.a == ASSAY_REG_RSP || uop.a == ASSAY_REG_RBP ||
                              uop.a == ASSAY_REG_BIAS || uop.a == ASSAY_REG_ZERO) &&
                             uop.b == ASSAY_REG_ZERO && uop.c == ASSAY_REG_ZERO;
    if (is_constant && !(kinds_ & kConstantAddresses))
      return;
    assay_uop &address = special(access->write ? ASSAY_PUBLISHED_STORE : ASSAY_PUBLISHED_LOAD,
                                 std::min<unsigned>(access->size, 255), 0);
    address.a = uop.a;
    address.i = uop.i;
    if (uop.op == ASSAY_UOP_load || uop.op == ASSAY_UOP_store) {
      address.b = uop.b;
      address.c = uop.c;
      address.shift = uop.shift;
    }
  }

  void after(uint32_t index, const assay_uop &uop) {
    const Access *access = access_at(index);
    if (access && !access->write && binary::reads_memory(uop) && instruction_.flow != Flow::ret &&
        !is_constant_memory(uop))
      value(ASSAY_VALUE_load, uop.width, uop.dst);
  }

  void micro_op(assay_uop uop) {
    const bool has_result = binary::has_result(uop);
    if (has_result && uop.dst >= ASSAY_PUBLISHED_REGISTERS)
      return; // x87 is never known
    if (!assay_uop_is_in_bpf(uop.op)) {
      if (has_result)
        special(ASSAY_PUBLISHED_FORGET, 8, uop.dst);
      return;
    }
    if (forgets_operand(uop))
      uop.a = uop.b = ASSAY_REG_ZERO;
    entries_.push_back(uop);
  }

  void stop(assay_sample_end why) { special(ASSAY_PUBLISHED_STOP, 8, 0).imm = why; }

  void opaque() {
    const std::string_view name = binary::mnemonic_name(instruction_.mnemonic);
    if (name == "syscall" || name == "sysenter" || name == "int")
      return stop(ASSAY_ENDED_system_call);
    binary::VariableSet written = code_.touched_by(instruction_).writes;
    if ((written & binary::bit(binary::kMemory)) || instruction_.flow != Flow::next)
      return stop(ASSAY_ENDED_unknown_instruction);
    for (unsigned reg = 0; reg < ASSAY_PUBLISHED_REGISTERS; reg++) {
      const unsigned variable = binary::variable_of(reg);
      if (variable < binary::kVariables && (written & binary::bit(variable)))
        special(ASSAY_PUBLISHED_FORGET, 8, reg);
    }
  }

  // The general registers that the instruction leaves anew, in whole or in part. Not the stack
  // pointer; not constants, of which nothing is to be learnt; not what was loaded and is recorded as
  // that. Of a register that is written in two parts (ax by `mul cl`) both together.
  void results() {
    if (!wants(ASSAY_VALUE_result) || instruction_.is_call() || instruction_.flow == Flow::ret)
      return;
    binary::RegisterSet done = binary::register_bit(ASSAY_REG_RSP);
    for (uint32_t i = instruction_.uops; i-- > 0;) {
      const assay_uop &uop = code_.uops[instruction_.uop + i];
      if (!binary::has_result(uop) || !is_general(uop.dst) ||
          (done & binary::register_bit(uop.dst)))
        continue;
      done |= binary::register_bit(uop.dst);
      const bool is_put =
          uop.op == ASSAY_UOP_put8 || uop.op == ASSAY_UOP_put8h || uop.op == ASSAY_UOP_put16;
      if (is_put && puts_other_part(uop, i)) {
        value(ASSAY_VALUE_result, assay_result_detail(uop.dst, 2), uop.dst);
        continue;
      }
      const bool is_constant =
          sources_[i] == Source::constant || (is_put && binary::has_immediate(uop));
      const bool is_loaded = wants(ASSAY_VALUE_load) && sources_[i] == Source::loaded;
      if (is_constant || is_loaded)
        continue;
      const unsigned bytes = is_put                        ? (uop.op == ASSAY_UOP_put16 ? 2u : 1u)
                             : assay_uop_has_width(uop.op) ? uop.width
                                                           : 8u;
      const unsigned detail = uop.op == ASSAY_UOP_put8h ? assay_second_byte_detail(uop.dst)
                                                        : assay_result_detail(uop.dst, bytes);
      value(ASSAY_VALUE_result, detail, is_put ? uop.b : uop.dst);
    }
  }

  // Of a byte that is put into a register by the last such micro-op: whether one before puts the other byte.
  bool puts_other_part(const assay_uop &last, uint32_t before) const {
    const auto other = last.op == ASSAY_UOP_put8    ? ASSAY_UOP_put8h
                       : last.op == ASSAY_UOP_put8h ? ASSAY_UOP_put8
                                                    : ASSAY_UOP_COUNT;
    for (uint32_t i = 0; i < before; i++)
      if (const assay_uop &uop = code_.uops[instruction_.uop + i];
          uop.op == other && uop.dst == last.dst)
        return true;
    return false;
  }

  enum class Source : uint8_t { computed, constant, loaded };
  std::vector<Source> sources_; // by micro-op
  const Code &code_;
  const Instruction &instruction_;
  Kinds kinds_;
  const image::Executable *file_;
  std::vector<assay_uop> &entries_;
};

} // namespace

void publish(const Code &code, const Instruction &instruction, std::span<const std::byte> bytes,
             std::optional<binary::RegisterSet> arguments, std::optional<CallerRule> caller,
             Kinds kinds, const image::Executable *file, std::vector<assay_uop> &entries) {
  const size_t at = entries.size();
  entries.emplace_back();
  Publisher publisher(code, instruction, kinds, file, entries);
  if (arguments)
    publisher.entry(*arguments);
  if (caller && !(arguments && kinds & kind_bit(ASSAY_VALUE_caller)))
    publisher.caller(*caller);
  publisher.body();
  assay_code_head head = {};
  head.length = instruction.length;
  const bool jumps = instruction.is_call() || instruction.flow == Flow::jump ||
                     instruction.flow == Flow::indirect_jump || instruction.flow == Flow::ret;
  head.flags = static_cast<uint8_t>((instruction.repeats ? ASSAY_CODE_REPEATS : 0) |
                                    (jumps ? ASSAY_CODE_JUMPS : 0));
  head.uops = static_cast<uint16_t>(entries.size() - at - 1);
  std::memcpy(head.bytes, bytes.data(),
              std::min({sizeof head.bytes, size_t{instruction.length}, bytes.size()}));
  std::memcpy(&entries[at], &head, sizeof head);
}

} // namespace values
