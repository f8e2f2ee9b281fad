// A branch asks flags that an instruction made of two numbers. Where these still are what they
// were, it asks them instead: `if (rax < rdx)`.
//
// That holds for cmp and test, and only if no step behind them in the block writes their operands.
// One case more: where sub overwrites its operand, equality is still asked, as `rax == 0`. Other
// conditions ask the flags themselves. If what a condition reads is written before the block ends,
// the branch asks the condition's result.
//
// Variables are words of 64 bits, so narrow widths and signs are casts. A micro-op that no operator
// of C expresses is a call that names it.

#include "trace/skeleton_expressions.h"

#include "binary/effects.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string_view>

namespace trace {
namespace {

using Kind = SkeletonStep::Kind;
using End = SkeletonBlock::End;
static_assert(kSkeletonVariables <= 64);
constexpr std::string_view kOperations[] = {
#define ASSAY_UOP(name, operands, expression, meaning) #name,
#define ASSAY_UOP_EFFECT(name, operands, expression, meaning) #name,
#include "abi/uops.def"
};
constexpr int kOperands[] = {
#define ASSAY_UOP(name, operands, expression, meaning) operands,
#define ASSAY_UOP_EFFECT(name, operands, expression, meaning) operands,
#include "abi/uops.def"
};

std::string unsigned_cast(unsigned bytes, const std::string &what) {
  return bytes == 8 ? what : fmt::format("(uint{}_t){}", 8 * bytes, what);
}
std::string signed_cast(unsigned bytes, const std::string &what) {
  return fmt::format("(int{}_t){}", 8 * bytes, what);
}

std::string second_of(const assay_uop &uop) {
  return binary::has_immediate(uop) ? constant(uop.imm) : name_of(uop.b);
}

// a + (b << shift) + c + i
std::string address_text(const assay_uop &uop) {
  std::string text;
  auto add = [&](const std::string &term) { text += text.empty() ? term : " + " + term; };
  if (uop.a != ASSAY_REG_ZERO)
    add(name_of(uop.a));
  int64_t offset = uop.imm;
  if (!binary::has_immediate(uop)) {
    if (uop.b != ASSAY_REG_ZERO)
      add(uop.shift ? fmt::format("{} * {}", name_of(uop.b), 1u << uop.shift) : name_of(uop.b));
    if (uop.c != ASSAY_REG_ZERO)
      add(name_of(uop.c));
    offset = uop.i;
  }
  if (text.empty())
    return fmt::format("{:#x}u", static_cast<uint64_t>(offset));
  if (offset)
    text += offset < 0 && offset > INT32_MIN ? " - " + constant(-offset) : " + " + constant(offset);
  return text;
}

Variables read_by(const assay_uop &uop, int operands) {
  Variables read = bit(uop.a);
  if (!binary::has_immediate(uop)) {
    if (operands > 1)
      read |= bit(uop.b);
    if (operands > 2)
      read |= bit(uop.c);
  }
  return read;
}

// Whether nothing writes what step `s` wrote until the end of the block.
bool is_last(const std::vector<SkeletonStep> &steps, size_t s) {
  for (size_t later = s + 1; later < steps.size(); later++)
    if (writes(steps[later]) & writes(steps[s]))
      return false;
  return true;
}

// A condition on flags that step `f` makes of numbers, asked of the numbers at the end of the block.
std::optional<Condition> comparison(const std::vector<SkeletonStep> &steps, size_t f,
                                    unsigned condition) {
  const assay_uop &flags = steps[f].uop;
  if (steps[f].kind != Kind::compute ||
      (flags.op != ASSAY_UOP_flags_sub && flags.op != ASSAY_UOP_flags_and))
    return std::nullopt;
  const unsigned w = flags.width;
  const Variables operands = read_by(flags, 2);
  Variables written = 0;
  for (size_t s = f + 1; s < steps.size(); s++) {
    const assay_uop &uop = steps[s].uop;
    // What is left is 0 if they were equal.
    if (flags.op == ASSAY_UOP_flags_sub && steps[s].kind == Kind::compute &&
        uop.op == ASSAY_UOP_sub && uop.width == w && uop.a == flags.a && uop.b == flags.b &&
        (!binary::has_immediate(uop) || uop.imm == flags.imm) && !(written & operands) &&
        (uop.dst == flags.a) && is_last(steps, s)) {
      if (condition == ASSAY_UOP_if_e)
        return Condition{unsigned_cast(w, name_of(uop.dst)) + " == 0", bit(uop.dst)};
      if (condition == ASSAY_UOP_if_ne)
        return Condition{unsigned_cast(w, name_of(uop.dst)) + " != 0", bit(uop.dst)};
    }
    written |= writes(steps[s]);
  }
  if (written & operands)
    return std::nullopt;
  const std::string a = name_of(flags.a), b = second_of(flags);
  auto is = [&](const char *operation, bool is_signed) {
    const std::string left = is_signed ? signed_cast(w, a) : unsigned_cast(w, a);
    const std::string right = is_signed ? signed_cast(w, b) : unsigned_cast(w, b);
    return Condition{fmt::format("{} {} {}", left, operation, right), operands};
  };
  if (flags.op == ASSAY_UOP_flags_sub)
    switch (condition) {
    case ASSAY_UOP_if_b: return is("<", false);
    case ASSAY_UOP_if_ae: return is(">=", false);
    case ASSAY_UOP_if_be: return is("<=", false);
    case ASSAY_UOP_if_a: return is(">", false);
    case ASSAY_UOP_if_e: return is("==", false);
    case ASSAY_UOP_if_ne: return is("!=", false);
    case ASSAY_UOP_if_l: return is("<", true);
    case ASSAY_UOP_if_ge: return is(">=", true);
    case ASSAY_UOP_if_le: return is("<=", true);
    case ASSAY_UOP_if_g: return is(">", true);
    default: return std::nullopt;
    }
  const std::string both =
      !binary::has_immediate(flags) && flags.a == flags.b ? a : fmt::format("({} & {})", a, b);
  auto with_zero = [&](const char *operation, bool is_signed) {
    return Condition{fmt::format("{} {} 0",
                                 is_signed ? signed_cast(w, both) : unsigned_cast(w, both),
                                 operation),
                     operands};
  };
  switch (condition) {
  case ASSAY_UOP_if_e: return with_zero("==", false);
  case ASSAY_UOP_if_ne: return with_zero("!=", false);
  case ASSAY_UOP_if_s:
  case ASSAY_UOP_if_l: return with_zero("<", true);
  case ASSAY_UOP_if_ns:
  case ASSAY_UOP_if_ge: return with_zero(">=", true);
  case ASSAY_UOP_if_le: return with_zero("<=", true);
  case ASSAY_UOP_if_g: return with_zero(">", true);
  default: return std::nullopt;
  }
}

} // namespace

Variables bit(unsigned variable) {
  return Variables{1} << variable;
}

bool is_constant(unsigned variable) {
  return variable == ASSAY_REG_ZERO || variable == ASSAY_REG_BIAS || variable == ASSAY_REG_FS;
}

std::string access_text(const SkeletonStep &step, const std::string &more) {
  return fmt::format("OUT({:#x}, '{}', {}, {}{});", step.pc, step.write ? 'W' : 'R', step.size,
                     address_text(step.uop), more);
}

Variables read_by(const SkeletonStep &step) {
  switch (step.kind) {
  case Kind::in: return 0;
  case Kind::compute:
    if (step.uop.op == ASSAY_UOP_xor && step.uop.a == step.uop.b &&
        !binary::has_immediate(step.uop))
      return 0;
    return read_by(step.uop, kOperands[step.uop.op]);
  case Kind::access: return read_by(step.uop, 3);
  case Kind::repeat:
  case Kind::compare: return read_by(step.uop, 3) | bit(ASSAY_REG_RCX);
  }
  return 0;
}

std::string name_of(unsigned variable) {
  static constexpr const char *kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp",  "rbp",
                                           "rsi", "rdi", "r8",  "r9",  "r10",  "r11",
                                           "r12", "r13", "r14", "r15", "flags"};
  if (variable < std::size(kNames))
    return kNames[variable];
  switch (variable) {
  case ASSAY_REG_ZERO: return "0";
  case ASSAY_REG_BIAS: return "bias";
  case ASSAY_REG_FS: return "fs";
  case kLoopEnd: return "behind_loop";
  default: break;
  }
  return variable >= ASSAY_REG_TEMPORARIES ? fmt::format("t{}", variable - ASSAY_REG_TEMPORARIES)
                                           : fmt::format("v{}", variable);
}

std::string constant(int64_t value) {
  if (value > -1024 && value < 1024)
    return fmt::format("{}", value);
  if (value < 0 && value > INT32_MIN)
    return fmt::format("-{:#x}", -value);
  return fmt::format("{:#x}u", static_cast<uint64_t>(value))
      .append(value < 0 || value > INT32_MAX ? "ll" : "");
}

std::string value_text(const assay_uop &uop) {
  const std::string a = name_of(uop.a), b = second_of(uop);
  auto cut = [&](const std::string &text) {
    return uop.width == 8 ? text : unsigned_cast(uop.width, "(" + text + ")");
  };
  if (uop.a == ASSAY_REG_ZERO && binary::has_immediate(uop) &&
      (uop.op == ASSAY_UOP_or || uop.op == ASSAY_UOP_add || uop.op == ASSAY_UOP_xor))
    return constant(static_cast<int64_t>(static_cast<uint64_t>(uop.imm) &
                                         ~uint64_t{0} >> (64 - 8 * uop.width)));
  switch (uop.op) {
  case ASSAY_UOP_copy: return unsigned_cast(uop.width, a);
  case ASSAY_UOP_lea: return cut(address_text(uop));
  case ASSAY_UOP_add:
    return binary::has_immediate(uop) && uop.imm < 0 && uop.imm > INT32_MIN
               ? cut(fmt::format("{} - {}", a, constant(-uop.imm)))
               : cut(fmt::format("{} + {}", a, b));
  case ASSAY_UOP_sub: return cut(fmt::format("{} - {}", a, b));
  case ASSAY_UOP_and: return cut(fmt::format("{} & {}", a, b));
  case ASSAY_UOP_or: return cut(fmt::format("{} | {}", a, b));
  case ASSAY_UOP_xor:
    return !binary::has_immediate(uop) && uop.a == uop.b ? "0" : cut(fmt::format("{} ^ {}", a, b));
  case ASSAY_UOP_mul: return cut(fmt::format("{} * {}", a, b));
  case ASSAY_UOP_shl:
    if (binary::has_immediate(uop))
      return cut(fmt::format("{} << {}", a, uop.imm & (uop.width == 8 ? 63 : 31)));
    break;
  case ASSAY_UOP_sign_extend:
    if (uop.i == 32 || uop.i == 48 || uop.i == 56)
      return unsigned_cast(uop.width,
                           "(uint64_t)" + signed_cast(static_cast<unsigned>(64 - uop.i) / 8, a));
    break;
  case ASSAY_UOP_select:
    return unsigned_cast(uop.width, fmt::format("({} ? {} : {})", name_of(uop.c), a, b));
  default: break;
  }
  if (binary::has_immediate(uop) || (uop.shift == 0 && uop.i == 0))
    return fmt::format("OP({}, {}, {}, {}, {})", kOperations[uop.op], uop.width, a, b,
                       binary::has_immediate(uop) || kOperands[uop.op] < 3 ? "0" : name_of(uop.c));
  return fmt::format("op_{}({}, {}, {}, {}, {}, {})", kOperations[uop.op], a, b, name_of(uop.c),
                     uop.width, uop.shift, uop.i);
}

Variables writes(const SkeletonStep &step) {
  return step.kind == Kind::in || step.kind == Kind::compute ? bit(step.uop.dst) : 0;
}

Condition condition_of(const SkeletonBlock &block) {
  if (block.end == End::logged)
    return {"IN(1)", 0};
  if (block.end == End::count)
    return {name_of(block.condition) + " != behind_loop", bit(block.condition) | bit(kLoopEnd)};
  if (block.end != End::branch)
    return {};
  const auto &steps = block.steps;
  for (size_t c = steps.size(); c-- > 0;) {
    const SkeletonStep &asks = steps[c];
    if (asks.kind == Kind::access || asks.uop.dst != block.condition)
      continue;
    if (asks.kind != Kind::compute)
      break;
    const Condition condition{value_text(asks.uop), read_by(asks)};
    for (size_t s = c + 1; s < steps.size(); s++)
      if (writes(steps[s]) & condition.read) // it is asked before
        return {name_of(block.condition), bit(block.condition)};
    if (!assay_uop_is_condition(asks.uop.op))
      return condition;
    for (size_t f = c; f-- > 0;)
      if (writes(steps[f]) & bit(asks.uop.a)) {
        if (auto plain = comparison(steps, f, asks.uop.op))
          return *plain;
        break;
      }
    return condition;
  }
  return {name_of(block.condition), bit(block.condition)};
}

std::string negated(const std::string &condition) {
  static constexpr std::pair<std::string_view, std::string_view> kOpposite[] = {
      {" == ", " != "}, {" != ", " == "}, {" < ", " >= "},
      {" >= ", " < "},  {" <= ", " > "},  {" > ", " <= "}};
  for (const auto &[is, is_not] : kOpposite)
    if (const size_t at = condition.find(is);
        at != std::string::npos && condition.find(is, at + 1) == std::string::npos &&
        condition.find('?') == std::string::npos && condition.find("OP(") == std::string::npos)
      return condition.substr(0, at).append(is_not).append(condition.substr(at + is.size()));
  return condition.find(' ') == std::string::npos || condition.starts_with("OP(") ||
                 condition.starts_with("IN(")
             ? "!" + condition
             : "!(" + condition + ")";
}

} // namespace trace
