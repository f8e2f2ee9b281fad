// Walks over the routine in reverse postorder. In the first, every join of a loop's header is a
// definition, and so shows whether what comes back to it is itself plus something that does not change
// in the loop; in the next those joins are replaced by start + counter * step, which may show the same
// of further ones, until nothing is new.
//
// Behind a loop that is always left at the same count, that takes the counter's place. A pointer that goes through a
// row in an inner loop then goes up evenly in the outer one, which shows in the rounds after that.
//
// A value of 32 bits that goes up stays one of 32 bits: zext(start + counter * step). The extension
// falls away where the value is known to fit (binary/expression.cc), never because it usually does.

#include "binary/forms.h"

#include "binary/effects.h"
#include "binary/spills.h"
#include "binary/trip_counts.h"

#include <algorithm>
#include <bit>

namespace binary {
namespace {

constexpr int kMaxRounds = 8;

unsigned width_of(uint64_t most) {
  return most <= 0xff ? 1 : most <= 0xffff ? 2 : most <= 0xffffffff ? 4 : 8;
}

// Lanes of vectors are parts of a value, not values: what is taken out of them is looked into no more.
bool reads_general_register(unsigned reg) {
  return reg == ASSAY_UOP_IMMEDIATE || reg < ASSAY_REG_MASKS ||
         (reg >= ASSAY_REG_TEMPORARIES && reg < ASSAY_REG_LANES);
}

} // namespace

Forms::Forms(const FlowGraph &graph, const Ssa &ssa) : graph_(graph), ssa_(ssa) {
  expressions_.reserve(
      2 * ssa.values.size()); // what is never written takes no memory; to grow takes a copy
  zero_ = expressions_.constant(0);
  bias_ = expressions_.definition(kBias);
  last_counts_.resize(ssa.loops.all.size());
  name_counters();
  evaluate_with_inductions();
  if (spills_ = find_spills(graph, ssa, *this); !spills_.empty())
    evaluate_with_inductions();
  for (int round = 0; round < kMaxRounds && find_last_counts(); round++)
    evaluate_with_inductions();
}

// Each round knows the inner loops better: what they leave alone comes back to the outer ones as it was.
void Forms::evaluate_with_inductions() {
  evaluate();
  for (int round = 0; round < kMaxRounds && find_inductions(); round++)
    evaluate();
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

ExprId Forms::form_at(ValueId value, uint32_t node) {
  const ExprId form = forms_[value.v];
  const uint32_t loop = ssa_.loops.innermost[ssa_.values[value.v].node];
  if (!form.known() || loop == Loop::kNone || ssa_.loops.contains(loop, node))
    return form;
  return behind_loops(form, node);
}

// With the last counts of the loops that this node is not in. Only the low `width` bytes matter.
ExprId Forms::behind_loops(ExprId form, uint32_t node, unsigned width) {
  const Expr whole = expressions_[form];
  switch (whole.kind) {
  case ExprKind::counter: {
    const ExprId last = last_count({form, 1}, node, width);
    return last.known() ? behind_loops(last, node, width) : form;
  }
  case ExprKind::sum: {
    ExprId total = expressions_.constant(whole.value);
    for (size_t i = 0, count = expressions_.terms(form).size(); i < count; i++) {
      const Term term = expressions_.terms(form)[i];
      const ExprId last = last_count(term, node, width);
      total = last.known()
                  ? expressions_.add(total, behind_loops(last, node, width))
                  : expressions_.combine(total, 1, behind_loops(term.of, node), term.coefficient);
    }
    return total;
  }
  case ExprKind::zero_extend:
    return expressions_.zero_extend(behind_loops(expressions_.terms(form)[0].of, node, whole.width),
                                    whole.width);
  case ExprKind::sign_extend:
    return expressions_.sign_extend(behind_loops(expressions_.terms(form)[0].of, node, whole.width),
                                    whole.width);
  default: return form;
  }
}

// What a term is at this node, as far as its low `width` bytes go, if it is the counter of a loop
// that was left; not known() of others, and where the last count is not.
ExprId Forms::last_count(const Term &term, uint32_t node, unsigned width) {
  const Expr counter = expressions_[term.of];
  const auto loop = static_cast<uint32_t>(counter.value);
  if (counter.kind != ExprKind::counter || ssa_.loops.contains(loop, node))
    return {};
  LastCount &last = last_counts_[loop];
  last.is_asked_for = true;
  if (!last.times.known())
    return {};
  ExprId count = expressions_.sub(last.times, expressions_.constant(1));
  if (static_cast<unsigned>(std::countr_zero(term.coefficient)) + last.bits < 8 * width) {
    if (last.bits % 8 || !std::has_single_bit(last.bits))
      return {};
    count = expressions_.zero_extend(count, last.bits / 8);
  }
  return expressions_.scale(count, term.coefficient);
}

bool Forms::find_last_counts() {
  bool any = false;
  for (uint32_t loop = 0; loop < last_counts_.size(); loop++) {
    if (!last_counts_[loop].is_asked_for || last_counts_[loop].times.known())
      continue;
    const TripCount count = trip_count(graph_, ssa_, *this, loop);
    if (!count.times.known() || count.exits.size() != 1) // an exception leaves it at any count
      continue;
    // A number is the count itself, but for 0, which stands for 2^bits.
    const bool is_whole =
        expressions_.is_constant(count.times) && !expressions_.is_constant(count.times, 0);
    last_counts_[loop].times = count.times;
    last_counts_[loop].bits = is_whole ? 64 : count.bits;
    any = true;
  }
  return any;
}

ExprId Forms::operand(uint32_t node, ValueId value, unsigned reg) {
  if (reg == ASSAY_REG_BIAS)
    return bias_;
  if (!value.known())
    return zero_;
  return forms_[value.v].known() ? form_at(value, node) : leaf(value);
}

ExprId Forms::micro_op(uint32_t node, uint32_t at, const assay_uop &uop) {
  const UopValues &values = ssa_.uops[at];
  ValueId result = values.result;
  if (uop.op == ASSAY_UOP_load) {
    const auto spill = spills_.empty() ? spills_.end() : spills_.find(result.v);
    const ExprId stored = spill == spills_.end() ? ExprId{} : form_at(spill->second, node);
    return stored.known() ? expressions_.zero_extend(stored, uop.width) : leaf(result, uop.width);
  }
  bool reads_general = reads_general_register(uop.a) && reads_general_register(uop.b) &&
                       (has_immediate(uop) || reads_general_register(uop.c));
  if (!reads_general || uop.op == ASSAY_UOP_load_if || assay_uop_reads_modes(uop.op))
    return leaf(result);
  // The direction flag is clear unless the routine itself has set it.
  if (uop.op == ASSAY_UOP_string_step && ssa_.values[values.a.v].kind != ValueKind::entry)
    return leaf(result);
  ExprId a = operand(node, values.a, uop.a);
  ExprId b = has_immediate(uop) ? expressions_.constant(static_cast<uint64_t>(uop.imm))
                                : operand(node, values.b, uop.b);
  ExprId c = has_immediate(uop) ? zero_ : operand(node, values.c, uop.c);
  ExprId form = expressions_.apply(uop, a, b, c);
  // What is not linear is where substitution stops, and what has too many terms; a copy is neither.
  bool stops = expressions_[form].kind == ExprKind::operation && form != a && form != b;
  return stops ? leaf(result, width_of(expressions_.most(form))) : form;
}

// With what this walk knows of the definitions that come before, as they are at this node.
ExprId Forms::substituted(ExprId form, uint32_t node) {
  const Expr whole = expressions_[form];
  switch (whole.kind) {
  case ExprKind::definition: {
    bool known = whole.value != kBias && forms_[whole.value].known();
    return known ? form_at({static_cast<uint32_t>(whole.value)}, node) : form;
  }
  case ExprKind::sum: {
    ExprId total = expressions_.constant(whole.value);
    for (size_t i = 0, count = expressions_.terms(form).size(); i < count; i++) {
      Term term = expressions_.terms(form)[i];
      total = expressions_.combine(total, 1, substituted(term.of, node), term.coefficient);
    }
    return total;
  }
  case ExprKind::zero_extend:
    return expressions_.zero_extend(substituted(expressions_.terms(form)[0].of, node), whole.width);
  case ExprKind::sign_extend:
    return expressions_.sign_extend(substituted(expressions_.terms(form)[0].of, node), whole.width);
  default: return form;
  }
}

// start + counter * step
ExprId Forms::iterated(ValueId value, const Induction &induction) {
  uint32_t header = ssa_.values[value.v].node;
  ExprId start;
  for (size_t i = 0; i < ssa_.predecessors[header].size(); i++)
    if (!ssa_.loops.contains(induction.loop, ssa_.predecessors[header][i]))
      start = form_at(ssa_.operands(value)[i], header);
  // Where only the low bytes go round, the first iteration must fit into them as well.
  if (induction.width < 8 && expressions_.most(start) > (1ULL << 8 * induction.width) - 1)
    return leaf(value);
  ExprId step = substituted(induction.step, header), counter = expressions_.counter(induction.loop),
         gone;
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
    const ExprId form = from.known() ? form_at(from, ssa_.values[value.v].node) : ExprId{};
    if (!form.known() || (same.known() && form != same))
      return leaf(value);
    same = form;
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
        const UopValues &values = ssa_.uops[at];
        if (values.result.known() && may_be_in_address(values.result))
          forms_[values.result.v] = micro_op(node, at, uop);
        if (uop.op == ASSAY_UOP_load ||
            uop.op == ASSAY_UOP_store) // addresses may ask for last counts
          for (ValueId each : {values.a, values.b, values.c})
            if (each.known())
              form_at(each, node);
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
        ExprId form = operands[i].known() ? form_at(operands[i], header) : ExprId{};
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

ExprId Forms::address(uint32_t node, uint32_t at, const assay_uop &uop) {
  const UopValues &values = ssa_.uops[at];
  const ExprId a = operand(node, values.a, uop.a);
  if (uop.op == ASSAY_UOP_load_if || uop.op == ASSAY_UOP_store_if)
    return expressions_.add(a, expressions_.constant(static_cast<uint64_t>(int64_t{uop.i})));
  const ExprId b = operand(node, values.b, uop.b), c = operand(node, values.c, uop.c);
  return expressions_.address(a, b, uop.shift, c, uop.i);
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

} // namespace binary
