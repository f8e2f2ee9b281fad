// Names of values and text of forms. A value's name is that of its variable and its number among the values of that
// variable, so that it is short and the same in each report; counters are I, J, … by the depth of their loops, as on
// the slides.

#include "binary/forms.h"

#include "base/stable_sort.h"

#include <fmt/format.h>

#include <array>

namespace binary {
namespace {

const char *register_name(unsigned variable) {
  static constexpr const char *kGeneral[] = {
      "rax", "rcx", "rdx", "rbx", "rsp", "rbp",   "rsi",     "rdi", "r8", "r9",   "r10",
      "r11", "r12", "r13", "r14", "r15", "flags", "control", "fs",  "gs", "mxcsr"};
  return variable < std::size(kGeneral) ? kGeneral[variable] : nullptr;
}

} // namespace

void Forms::name_counters() {
  std::vector<unsigned> used;
  for (const Loop &loop : ssa_.loops.all) {
    unsigned letter = (loop.depth - 1) % 8;
    if (used.size() <= letter)
      used.resize(letter + 1);
    unsigned number = ++used[letter];
    std::string name(1, static_cast<char>('I' + letter));
    counter_names_.push_back(number == 1 ? name : name + std::to_string(number));
  }
}

// Numbers the values of a variable, from 0.
uint32_t Forms::version(ValueId value) const {
  if (versions_.empty()) {
    std::array<uint32_t, kVariables + 1> next{};
    for (const Value &each : ssa_.values)
      versions_.push_back(next[each.variable]++);
  }
  return versions_[value.v];
}

std::string Forms::name(ValueId value) const {
  const Value &what = ssa_.values[value.v];
  if (what.variable == kVariables)
    return fmt::format("t.{}", value.v);
  if (what.variable == kMemory)
    return fmt::format("M.{}", version(value));
  if (const char *known = register_name(what.variable))
    return fmt::format("{}.{}", known, version(value));
  if (what.variable == kX87)
    return fmt::format("x87.{}", version(value));
  if (what.variable >= kVectors)
    return fmt::format("zmm{}.{}", what.variable - kVectors, version(value));
  return fmt::format("k{}.{}", what.variable - kMasks, version(value));
}

void Forms::append_term(const Term &term, bool is_first, std::string &to) const {
  auto factor = static_cast<int64_t>(term.coefficient);
  bool negative = factor < 0;
  uint64_t magnitude = negative ? 0 - term.coefficient : term.coefficient;
  to += is_first ? (negative ? "-" : "") : negative ? " - " : " + ";
  if (magnitude != 1)
    to += magnitude < 1 << 20 ? fmt::format("{}*", magnitude) : fmt::format("{:#x}*", magnitude);
  append_text(term.of, to);
}

void Forms::append_text(ExprId form, std::string &to) const {
  const Expr &node = expressions_[form];
  auto number = [](uint64_t value) {
    auto is_signed = static_cast<int64_t>(value);
    return is_signed > -4096 && is_signed < 4096 ? fmt::format("{}", is_signed)
                                                 : fmt::format("{:#x}", value);
  };
  switch (node.kind) {
  case ExprKind::constant: to += number(node.value); return;
  case ExprKind::definition:
    to += node.value == kBias ? "base" : name({static_cast<uint32_t>(node.value)});
    return;
  case ExprKind::counter: to += counter_names_[node.value]; return;
  case ExprKind::zero_extend:
  case ExprKind::sign_extend:
    to += fmt::format("{}{}(", node.kind == ExprKind::zero_extend ? 'u' : 's', 8 * node.width);
    append_text(expressions_.terms(form)[0].of, to);
    to += ')';
    return;
  case ExprKind::sum: {
    // Constants of the image are addresses in it: the bias is not shown.
    std::vector<Term> terms;
    bool has_bias = false;
    for (const Term &term : expressions_.terms(form)) {
      const Expr &of = expressions_[term.of];
      if (of.kind == ExprKind::definition && of.value == kBias && term.coefficient == 1)
        has_bias = true;
      else
        terms.push_back(term);
    }
    // Counters behind definitions, the innermost first, as on the slides.
    auto rank = [&](const Term &term) {
      const Expr &of = expressions_[term.of];
      return of.kind == ExprKind::counter ? -static_cast<int64_t>(of.value) : INT64_MIN;
    };
    base::stable_sort(terms, [&](const Term &a, const Term &b) { return rank(a) < rank(b); });
    bool is_first = true;
    bool is_address = has_bias || (node.value >= 0x10000 && node.value < 1ULL << 47);
    if (is_address) {
      to += fmt::format("{:#x}", node.value);
      is_first = false;
    }
    for (const Term &term : terms) {
      append_term(term, is_first, to);
      is_first = false;
    }
    if (!is_address && node.value) {
      auto offset = static_cast<int64_t>(node.value);
      to += offset < 0 ? " - " : " + ";
      to += number(offset < 0 ? 0 - node.value : node.value);
    }
    return;
  }
  case ExprKind::operation: {
    auto operands = expressions_.terms(form);
    bool is_product = node.op == ASSAY_UOP_mul;
    for (size_t i = 0; i < 2 && i < operands.size(); i++) {
      if (i)
        to += is_product ? "*" : " + ";
      bool is_sum = expressions_[operands[i].of].kind == ExprKind::sum;
      to += is_sum ? "(" : "";
      if (operands[i].coefficient != 1)
        to += fmt::format("{}*", static_cast<int64_t>(operands[i].coefficient));
      append_text(operands[i].of, to);
      to += is_sum ? ")" : "";
    }
    return;
  }
  default: to += '?';
  }
}

std::string Forms::text(ExprId form) const {
  std::string to;
  append_text(form, to);
  return to;
}

std::string Forms::text(const Condition &condition) const {
  static constexpr const char *kOps[] = {"==", "!=", "<", "<=", ">", ">="};
  const char *op = kOps[static_cast<unsigned>(condition.op)];
  const bool ordered = condition.op >= Condition::Op::less;
  const std::string compared =
      fmt::format("{} {} {}", text(condition.left), op, text(condition.right));
  if (ordered)
    return condition.is_signed ? compared : compared + " unsigned";
  // What both sides have is left out, if that is shorter. Of an order it would be true only without overflow.
  const std::string difference = fmt::format("{} {} 0", text(condition.difference), op);
  return difference.size() < compared.size() ? difference : compared;
}

} // namespace binary
