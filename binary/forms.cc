// Walks over the routine in reverse postorder. In the first, every join of a loop's header is a
// definition, and so shows whether what comes back to it is itself plus something that does not change
// in the loop; in the next those joins are replaced by start + counter * step, which may show the same
// of further ones, until nothing is new.
//
// A value of 32 bits that goes up stays one of 32 bits: zext(start + counter * step). The extension
// falls away where the value is known to fit (binary/expression.cc), never because it usually does.

#include "binary/forms.h"

#include "base/stable_sort.h"
#include "binary/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace binary {
namespace {

unsigned width_of(uint64_t most) {
  return most <= 0xff ? 1 : most <= 0xffff ? 2 : most <= 0xffffffff ? 4 : 8;
}

// Lanes of vectors are parts of a value, not values: what is taken out of them is looked into no more.
bool reads_general_register(unsigned reg) {
  return reg == ASSAY_UOP_IMMEDIATE || reg < ASSAY_REG_MASKS ||
         (reg >= ASSAY_REG_TEMPORARIES && reg < ASSAY_REG_LANES);
}

const char *register_name(unsigned variable) {
  static constexpr const char *kGeneral[] = {
      "rax", "rcx", "rdx", "rbx", "rsp", "rbp",   "rsi",     "rdi", "r8", "r9",   "r10",
      "r11", "r12", "r13", "r14", "r15", "flags", "control", "fs",  "gs", "mxcsr"};
  return variable < std::size(kGeneral) ? kGeneral[variable] : nullptr;
}

} // namespace

Forms::Forms(const FlowGraph &graph, const Ssa &ssa) : graph_(graph), ssa_(ssa) {
  expressions_.reserve(
      2 * ssa.values.size()); // what is never written takes no memory; to grow takes a copy
  zero_ = expressions_.constant(0);
  bias_ = expressions_.definition(kBias);
  name_counters();
  // Each round knows the inner loops better: what they leave alone comes back to the outer ones as it
  // was.
  constexpr int kMaxRounds = 8;
  evaluate();
  for (int round = 0; round < kMaxRounds && find_inductions(); round++)
    evaluate();
}

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

ExprId Forms::leaf(ValueId value, unsigned width) {
  return expressions_.definition(value.v, width);
}

// Of others there is a form only where an operation asks for one: half of all values are flags and
// vectors, and hardly any is asked for.
bool Forms::may_be_in_address(ValueId value) const {
  const unsigned variable = ssa_.values[value.v].variable;
  return variable < kFlags || variable == kFs || variable == kGs || variable == kVariables;
}

ExprId Forms::operand(ValueId value, unsigned reg) {
  if (reg == ASSAY_REG_BIAS)
    return bias_;
  if (!value.known())
    return zero_;
  return forms_[value.v].known() ? forms_[value.v] : leaf(value);
}

ExprId Forms::micro_op(uint32_t at, const assay_uop &uop) {
  const UopValues &values = ssa_.uops[at];
  ValueId result = values.result;
  if (uop.op == ASSAY_UOP_load)
    return leaf(result, uop.width);
  bool reads_general = reads_general_register(uop.a) && reads_general_register(uop.b) &&
                       (has_immediate(uop) || reads_general_register(uop.c));
  if (!reads_general || uop.op == ASSAY_UOP_load_if || assay_uop_reads_modes(uop.op))
    return leaf(result);
  // The direction flag is clear unless the routine itself has set it.
  if (uop.op == ASSAY_UOP_string_step && ssa_.values[values.a.v].kind != ValueKind::entry)
    return leaf(result);
  ExprId a = operand(values.a, uop.a);
  ExprId b = has_immediate(uop) ? expressions_.constant(static_cast<uint64_t>(uop.imm))
                                : operand(values.b, uop.b);
  ExprId c = has_immediate(uop) ? zero_ : operand(values.c, uop.c);
  ExprId form = expressions_.apply(uop, a, b, c);
  const Expr &node = expressions_[form];
  // What is not linear is where substitution stops, and what has too many terms; a copy is neither.
  bool stops = node.kind == ExprKind::operation && form != a && form != b;
  return stops ? leaf(result, width_of(expressions_.most(form))) : form;
}

// With what this walk knows of the definitions that come before.
ExprId Forms::substituted(ExprId form) {
  const Expr node = expressions_[form];
  switch (node.kind) {
  case ExprKind::definition: {
    bool known = node.value != kBias && forms_[node.value].known();
    return known ? forms_[node.value] : form;
  }
  case ExprKind::sum: {
    ExprId total = expressions_.constant(node.value);
    for (size_t i = 0, count = expressions_.terms(form).size(); i < count; i++) {
      Term term = expressions_.terms(form)[i];
      total = expressions_.combine(total, 1, substituted(term.of), term.coefficient);
    }
    return total;
  }
  case ExprKind::zero_extend:
    return expressions_.zero_extend(substituted(expressions_.terms(form)[0].of), node.width);
  case ExprKind::sign_extend:
    return expressions_.sign_extend(substituted(expressions_.terms(form)[0].of), node.width);
  default: return form;
  }
}

// start + counter * step
ExprId Forms::iterated(ValueId value, const Induction &induction) {
  uint32_t header = ssa_.values[value.v].node;
  ExprId start;
  for (size_t i = 0; i < ssa_.predecessors[header].size(); i++)
    if (!ssa_.loops.contains(induction.loop, ssa_.predecessors[header][i]))
      start = forms_[ssa_.operands(value)[i].v];
  // Where only the low bytes go round, the first iteration must fit into them as well.
  if (induction.width < 8 && expressions_.most(start) > (1ULL << 8 * induction.width) - 1)
    return leaf(value);
  ExprId step = substituted(induction.step), counter = expressions_.counter(induction.loop), gone;
  if (expressions_.is_constant(step)) {
    gone = expressions_.scale(counter, expressions_[step].value);
  } else {
    assay_uop multiply{};
    multiply.op = ASSAY_UOP_mul;
    multiply.width = 8;
    gone = expressions_.apply(multiply, counter, step, zero_);
  }
  return expressions_.zero_extend(expressions_.add(start, gone), induction.width);
}

ExprId Forms::join(ValueId value) {
  if (auto induction = inductions_.find(value.v); induction != inductions_.end())
    return iterated(value, induction->second);
  // The same whichever way control came: nothing was joined. At the header of a loop what comes back
  // is not known yet.
  ExprId same;
  for (ValueId from : ssa_.operands(value)) {
    if (!from.known() || !forms_[from.v].known() || (same.known() && forms_[from.v] != same))
      return leaf(value);
    same = forms_[from.v];
  }
  return same.known() ? same : leaf(value);
}

void Forms::evaluate() {
  forms_.assign(ssa_.values.size(), {});
  for (uint32_t value = 0; value < ssa_.values.size(); value++) {
    ValueKind kind = ssa_.values[value].kind;
    if ((kind == ValueKind::entry || kind == ValueKind::call || kind == ValueKind::opaque) &&
        may_be_in_address({value}))
      forms_[value] = leaf({value});
  }
  for (uint32_t node : ssa_.dominators.order) {
    for (ValueId value : ssa_.joins_of(node))
      if (may_be_in_address(value))
        forms_[value.v] = join(value);
    if (ssa_.nodes[node].block == Node::kNoBlock)
      continue;
    uint32_t at = ssa_.nodes[node].first_uop;
    for (const Instruction &instruction :
         graph_.instructions_of(graph_.blocks[ssa_.nodes[node].block]))
      for (const assay_uop &uop : graph_.code.uops_of(instruction)) {
        if (const ValueId result = ssa_.uops[at].result;
            result.known() && may_be_in_address(result))
          forms_[result.v] = micro_op(at, uop);
        at++;
      }
  }
}

bool Forms::find_inductions() {
  bool any = false;
  for (uint32_t index = 0; index < ssa_.loops.all.size(); index++) {
    if (ssa_.loops.all[index].irreducible)
      continue;
    uint32_t header = ssa_.loops.all[index].header;
    for (ValueId value : ssa_.joins_of(header)) {
      if (ssa_.values[value.v].variable >= kFlags || inductions_.contains(value.v) ||
          forms_[value.v] != leaf(value))
        continue;
      Induction found;
      bool is_induction = true;
      auto operands = ssa_.operands(value);
      for (size_t i = 0; i < operands.size() && is_induction; i++) {
        if (!ssa_.loops.contains(index, ssa_.predecessors[header][i]))
          continue;
        ExprId form = operands[i].known() ? forms_[operands[i].v] : ExprId{};
        if (!form.known()) {
          is_induction = false;
          break;
        }
        unsigned width = 8;
        if (expressions_[form].kind == ExprKind::zero_extend) {
          width = expressions_[form].width;
          form = expressions_.terms(form)[0].of;
        }
        ExprId step = expressions_.sub(form, leaf(value));
        is_induction = invariant(step, index) && !counts_inside(step, index) &&
                       (!found.step.known() || (found.step == step && found.width == width));
        found.step = step;
        found.width = width;
      }
      if (!is_induction || !found.step.known())
        continue;
      found.loop = index;
      inductions_[value.v] = found;
      any = true;
    }
  }
  return any;
}

// Whether a counter in it goes on while the loop is executed: its own, or that of a loop inside.
bool Forms::counts_inside(ExprId form, uint32_t loop) const {
  const Expr &node = expressions_[form];
  if (node.kind == ExprKind::counter)
    return ssa_.loops.contains(loop, ssa_.loops.all[node.value].header);
  auto terms = expressions_.terms(form);
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Term &term) { return counts_inside(term.of, loop); });
}

ExprId Forms::address(uint32_t at, const assay_uop &uop) {
  const UopValues &values = ssa_.uops[at];
  const ExprId a = operand(values.a, uop.a);
  if (uop.op == ASSAY_UOP_load_if || uop.op == ASSAY_UOP_store_if)
    return expressions_.add(a, expressions_.constant(static_cast<uint64_t>(int64_t{uop.i})));
  const ExprId b = operand(values.b, uop.b), c = operand(values.c, uop.c);
  return expressions_.address(a, b, uop.shift, c, uop.i);
}

// What the micro-op at `place` reads.
ExprId Forms::first_operand(uint32_t place) {
  return operand(ssa_.uops[place].a, uop_making(place).a);
}
ExprId Forms::second_operand(uint32_t place) {
  const assay_uop &uop = uop_making(place);
  return has_immediate(uop) ? expressions_.constant(static_cast<uint64_t>(uop.imm))
                            : operand(ssa_.uops[place].b, uop.b);
}

const assay_uop &Forms::uop_making(uint32_t place) const {
  return graph_.code.uops[ssa_.values[ssa_.uops[place].result.v].uop];
}

// The two numbers that the flags made at `place` compare, where `asked` is asked of them.
std::optional<Forms::Compared> Forms::compared(uint32_t place, const assay_uop &asked) {
  const assay_uop &flags = uop_making(place);
  const bool asks_equality = asked.op == ASSAY_UOP_if_e || asked.op == ASSAY_UOP_if_ne;
  const ExprId left = first_operand(place);
  switch (flags.op) {
  case ASSAY_UOP_flags_sub: return Compared{left, second_operand(place), false};
  case ASSAY_UOP_flags_and:
    if (has_immediate(flags) || ssa_.uops[place].a != ssa_.uops[place].b)
      return std::nullopt;
    return Compared{left, zero_, true};
  case ASSAY_UOP_flags_inc:
  case ASSAY_UOP_flags_dec:
  case ASSAY_UOP_flags_add: {
    if (!asks_equality)
      return std::nullopt;
    const ExprId added = flags.op == ASSAY_UOP_flags_add   ? second_operand(place)
                         : flags.op == ASSAY_UOP_flags_inc ? expressions_.constant(1)
                                                           : expressions_.constant(~uint64_t{0});
    return Compared{expressions_.add(left, added), zero_, true};
  }
  case ASSAY_UOP_flags_result:
    if (!asks_equality)
      return std::nullopt;
    return Compared{left, zero_, true};
  default: return std::nullopt;
  }
}

// How a jump asks; of a difference the sign is known only without overflow, that is, from zero.
std::optional<Condition::Op> Forms::relation(unsigned asked, bool of_zero) {
  using Op = Condition::Op;
  switch (asked) {
  case ASSAY_UOP_if_e: return Op::equal;
  case ASSAY_UOP_if_ne: return Op::not_equal;
  case ASSAY_UOP_if_b:
  case ASSAY_UOP_if_l: return Op::less;
  case ASSAY_UOP_if_ae:
  case ASSAY_UOP_if_ge: return Op::greater_equal;
  case ASSAY_UOP_if_be:
  case ASSAY_UOP_if_le: return Op::less_equal;
  case ASSAY_UOP_if_a:
  case ASSAY_UOP_if_g: return Op::greater;
  case ASSAY_UOP_if_s: return of_zero ? std::optional(Op::less) : std::nullopt;
  case ASSAY_UOP_if_ns: return of_zero ? std::optional(Op::greater_equal) : std::nullopt;
  default: return std::nullopt;
  }
}

std::optional<Condition> Forms::condition(uint32_t at) {
  using Op = Condition::Op;
  auto made_by = [&](ValueId value) {
    return value.known() && ssa_.values[value.v].kind == ValueKind::micro_op
               ? ssa_.place_of(graph_, ssa_.values[value.v])
               : UINT32_MAX;
  };
  const uint32_t test = made_by(ssa_.uops[at].b);
  if (test == UINT32_MAX)
    return std::nullopt;
  const assay_uop &asked = uop_making(test);
  if (asked.op == ASSAY_UOP_is_zero || asked.op == ASSAY_UOP_not_zero) {
    const ExprId tested = expressions_.zero_extend(first_operand(test), asked.width);
    const Op op = asked.op == ASSAY_UOP_is_zero ? Op::equal : Op::not_equal;
    return Condition{op, false, asked.width, tested, zero_, tested};
  }
  if (!assay_uop_is_condition(asked.op))
    return std::nullopt;
  const uint32_t made = made_by(ssa_.uops[test].a);
  if (made == UINT32_MAX)
    return std::nullopt;
  const std::optional<Compared> numbers = compared(made, asked);
  if (!numbers)
    return std::nullopt;
  const std::optional<Op> op = relation(asked.op, numbers->of_zero);
  if (!op)
    return std::nullopt;
  const auto width = uop_making(made).width;
  const bool is_signed = asked.op == ASSAY_UOP_if_s || asked.op == ASSAY_UOP_if_ns ||
                         assay_uop_is_signed_condition(asked.op);
  auto extended = [&](ExprId form) {
    return is_signed ? expressions_.sign_extend(form, width)
                     : expressions_.zero_extend(form, width);
  };
  Condition result{*op, is_signed, width, extended(numbers->left), extended(numbers->right), {}};
  result.difference =
      *op <= Op::not_equal
          ? expressions_.zero_extend(expressions_.sub(numbers->left, numbers->right), width)
          : expressions_.sub(result.left, result.right);
  return result;
}

bool Forms::in_image(ExprId form) const {
  if (form == bias_)
    return true;
  auto terms = expressions_.terms(form);
  return expressions_[form].kind == ExprKind::sum &&
         std::any_of(terms.begin(), terms.end(),
                     [&](const Term &term) { return term.of == bias_ && term.coefficient == 1; });
}

bool Forms::invariant(ExprId form, uint32_t loop) const {
  bool result = true;
  definitions(form, [&](ValueId value) {
    result &= !ssa_.loops.contains(loop, ssa_.values[value.v].node);
  });
  return result;
}

bool Forms::affine(ExprId form, uint32_t node) const {
  uint32_t loop = ssa_.loops.innermost[node];
  while (loop != Loop::kNone && ssa_.loops.all[loop].parent != Loop::kNone)
    loop = ssa_.loops.all[loop].parent;
  return loop == Loop::kNone || invariant(form, loop);
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
