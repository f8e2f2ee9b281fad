// The header is reached for J = 0, 1, … K, and K is the first J for which the condition of the only exit says
// so; the exit must be passed in each iteration. With left - right = s * J + b:
//
//   left where they are equal      s * K = -b in w bits: K is -b / s, of which w - k bits count if 2^k is
//                                  the power of two in s, and b is a multiple of it
//   left by <, <=, >, >=           only of numbers: the first J in exact arithmetic, if neither side
//                                  wraps around on the way there
//
// Comparisons by size with values that are not numbers have no count: it would be true only if nothing
// wraps around, and a program that wraps around is what one looks for. Their conditions say as much.

#include "binary/trip_counts.h"

#include <algorithm>
#include <bit>

namespace binary {
namespace {

__extension__ using Wide = __int128;
using Op = Condition::Op;

Op contrary(Op op) {
  switch (op) {
  case Op::equal: return Op::not_equal;
  case Op::not_equal: return Op::equal;
  case Op::less: return Op::greater_equal;
  case Op::less_equal: return Op::greater;
  case Op::greater: return Op::less_equal;
  default: return Op::less;
  }
}

// offset + step * the loop's counter, without further counters of it.
struct Line {
  uint64_t step = 0;
  ExprId rest; // offset and all that does not change in the loop
};

// Whether it has a counter that goes on in the loop, or something that is not known.
bool changes(const Expressions &expressions, const Ssa &ssa, ExprId form, uint32_t loop) {
  const Expr &node = expressions[form];
  if (node.kind == ExprKind::counter)
    return ssa.loops.encloses(loop, static_cast<uint32_t>(node.value));
  if (node.kind == ExprKind::unknown || node.kind == ExprKind::load)
    return true;
  auto terms = expressions.terms(form);
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Term &term) { return changes(expressions, ssa, term.of, loop); });
}

std::optional<Line> line_of(const Forms &forms, Expressions &expressions, const Ssa &ssa,
                            ExprId form, uint32_t loop) {
  Line line;
  line.rest = expressions.constant(expressions.offset_of(form));
  auto add = [&](ExprId of, uint64_t coefficient) {
    const Expr node = expressions[of];
    if (node.kind == ExprKind::counter && node.value == loop) {
      line.step += coefficient;
      return true;
    }
    line.rest = expressions.combine(line.rest, 1, of, coefficient);
    return forms.invariant(of, loop) && !changes(expressions, ssa, of, loop);
  };
  const Expr node = expressions[form];
  if (node.kind == ExprKind::constant)
    return line;
  if (node.kind != ExprKind::sum)
    return add(form, 1) ? std::optional(line) : std::nullopt;
  for (size_t i = 0, count = expressions.terms(form).size(); i < count; i++) {
    Term term = expressions.terms(form)[i];
    if (!add(term.of, term.coefficient))
      return std::nullopt;
  }
  return line;
}

uint64_t inverse_of(uint64_t odd) { // modulo 2^64
  uint64_t x = odd;
  for (int i = 0; i < 6; i++)
    x *= 2 - odd * x;
  return x;
}

// The number nearest to 0 that is the same in the low bits.
uint64_t reduced(uint64_t x, unsigned bits) {
  const unsigned above = 64 - bits;
  return static_cast<uint64_t>(static_cast<int64_t>(x << above) >> above);
}

// Left where step * J + rest is 0 in `bits` bits.
void count_equal(Expressions &expressions, Line line, unsigned bits, TripCount &count) {
  if (line.step == 0)
    return;
  auto shift = static_cast<unsigned>(std::countr_zero(line.step));
  uint64_t unit = uint64_t{1} << shift, reciprocal = inverse_of(line.step >> shift);
  // -rest / unit, term by term.
  const Expr node = expressions[line.rest];
  if (expressions.offset_of(line.rest) % unit || shift >= bits)
    return;
  auto divided = [&](uint64_t x) {
    return reduced(static_cast<uint64_t>(static_cast<int64_t>(x) >> shift) * (0 - reciprocal),
                   bits - shift);
  };
  ExprId times =
      expressions.constant(reduced(divided(expressions.offset_of(line.rest)) + 1, bits - shift));
  if (node.kind == ExprKind::sum) {
    for (size_t i = 0, terms = expressions.terms(line.rest).size(); i < terms; i++) {
      Term term = expressions.terms(line.rest)[i];
      if (term.coefficient % unit)
        return;
      times = expressions.combine(times, 1, term.of, divided(term.coefficient));
    }
  } else if (node.kind != ExprKind::constant) {
    if (unit != 1)
      return;
    times = expressions.combine(times, 1, line.rest, divided(1));
  }
  count.bits = bits - shift;
  if (expressions.is_constant(times) && count.bits < 64)
    times = expressions.constant(expressions[times].value & ((uint64_t{1} << count.bits) - 1));
  count.times = times;
}

// The value of a side of a comparison, as it is compared.
Wide value_of(const Condition &condition, uint64_t x) {
  return condition.is_signed ? Wide{static_cast<int64_t>(x)} : Wide{x};
}

bool in_range(const Condition &condition, Wide x) {
  unsigned bits = 8 * condition.width;
  Wide least = condition.is_signed ? -(Wide{1} << (bits - 1)) : 0;
  Wide most = (Wide{1} << (condition.is_signed ? bits - 1 : bits)) - 1;
  return x >= least && x <= most;
}

// Left at the first J for which left OP right, both numbers that go up evenly.
void count_ordered(Expressions &expressions, const Condition &condition, Op op, Line left,
                   Line right, TripCount &count) {
  if (!expressions.is_constant(left.rest) || !expressions.is_constant(right.rest))
    return;
  Wide start_left = value_of(condition, expressions[left.rest].value),
       start_right = value_of(condition, expressions[right.rest].value);
  Wide step_left = static_cast<int64_t>(left.step), step_right = static_cast<int64_t>(right.step);
  // d(J) = start + step * J, and the loop is left where d > 0 …
  Wide start = start_left - start_right, step = step_left - step_right;
  if (op == Op::less || op == Op::less_equal) {
    start = -start;
    step = -step;
  }
  Wide wanted = op == Op::less || op == Op::greater ? 1 : 0; // … or at least that
  Wide last = 0;
  if (start < wanted) {
    if (step <= 0)
      return;
    last = (wanted - start + step - 1) / step;
  }
  if (!in_range(condition, start_left) || !in_range(condition, start_right) ||
      !in_range(condition, start_left + step_left * last) ||
      !in_range(condition, start_right + step_right * last) || last + 1 > (Wide{1} << 62))
    return;
  count.times = expressions.constant(static_cast<uint64_t>(last + 1));
}

void find_exits(const FlowGraph &graph, const Ssa &ssa, Forms &forms, uint32_t loop,
                TripCount &count) {
  for (uint32_t node : ssa.dominators.order) {
    if (!ssa.loops.contains(loop, node) || ssa.nodes[node].block == Node::kNoBlock)
      continue;
    const Block &block = graph.blocks[ssa.nodes[node].block];
    const Instruction &last = graph.last_of(block);
    bool leaves_routine = block.leaves != Block::kStays;
    for (size_t i = 0; i < ssa.successors[node].size() + leaves_routine; i++) {
      bool out = i == ssa.successors[node].size();
      uint64_t target = block.leaves;
      if (!out) {
        uint32_t to = ssa.successors[node][i];
        if (ssa.loops.contains(loop, to))
          continue;
        target = ssa.first_address(graph, to);
      }
      LoopExit exit{node, block.first + block.count - 1, false, false, std::nullopt};
      exit.if_taken = last.flow == Flow::branch && target == last.target() && target != last.end();
      exit.by_exception = last.is_call() && target != last.end();
      uint32_t at = ssa.nodes[node].first_uop;
      for (uint32_t j = block.first; j + 1 < block.first + block.count; j++)
        at += graph.code.instructions[j].uops;
      if (last.flow == Flow::branch)
        for (uint32_t j = 0; j < last.uops; j++)
          if (graph.code.uops[last.uop + j].op == ASSAY_UOP_branch)
            exit.condition = forms.condition(node, at + j);
      if (exit.condition && !exit.if_taken)
        exit.condition->op = contrary(exit.condition->op);
      count.exits.push_back(std::move(exit));
    }
  }
}

} // namespace

TripCount trip_count(const FlowGraph &graph, const Ssa &ssa, Forms &forms, uint32_t loop) {
  TripCount count;
  find_exits(graph, ssa, forms, loop, count);
  const LoopExit *only = nullptr;
  for (const LoopExit &exit : count.exits) {
    if (exit.by_exception)
      continue;
    if (only)
      return count;
    only = &exit;
  }
  const Loop &of = ssa.loops.all[loop];
  if (!only || !only->condition || of.irreducible ||
      ssa.loops.innermost[only->node] != loop) // in an inner loop it may be passed more often
    return count;
  for (uint32_t back : of.back)
    if (!ssa.dominators.dominates(only->node, back))
      return count;
  const Condition &condition = *only->condition;
  Op op = condition.op;
  Expressions &expressions = forms.expressions_to_add();
  if (op == Op::equal) {
    ExprId difference = condition.difference;
    if (expressions[difference].kind == ExprKind::zero_extend)
      difference = expressions.terms(difference)[0].of;
    if (auto line = line_of(forms, expressions, ssa, difference, loop))
      count_equal(expressions, *line, 8 * condition.width, count);
  } else if (op != Op::not_equal) {
    auto left = line_of(forms, expressions, ssa, condition.left, loop);
    auto right = line_of(forms, expressions, ssa, condition.right, loop);
    if (left && right)
      count_ordered(expressions, condition, op, *left, *right, count);
  }
  return count;
}

} // namespace binary
