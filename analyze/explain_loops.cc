// A loop in one sentence: how often it goes round, what its accesses do from one iteration to the next, and
// which of them follow no formula, with the reason.

#include "analyze/explain_loops.h"

#include "base/units.h"
#include "binary/trip_counts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace analyze {
namespace {

using namespace binary;

const char *origin_of(const FlowGraph &graph, const Value &value) {
  switch (value.kind) {
  case ValueKind::entry: return "an argument";
  case ValueKind::join: return "a join of several ways";
  case ValueKind::call: return "the result of a call";
  case ValueKind::opaque: return "the result of an opaque instruction";
  case ValueKind::micro_op:
    return graph.code.uops[value.uop].op == ASSAY_UOP_load ? "a load" : "computed";
  }
  return "";
}

// Whether a counter of a loop is in the expression.
bool counts(const Expressions &expressions, ExprId form, uint32_t loop) {
  const Expr &node = expressions[form];
  if (node.kind == ExprKind::counter)
    return node.value == loop;
  auto terms = expressions.terms(form);
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Term &term) { return counts(expressions, term.of, loop); });
}

std::string listed(const std::set<std::string> &words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string times_text(const ExplainedLoop &loop) {
  if (loop.iteration_count)
    return base::format_counted(double(*loop.iteration_count), "iteration");
  if (loop.iterations == "0")
    return fmt::format("2^{} iterations", loop.iterations_bits);
  if (!loop.iterations.empty())
    return loop.iterations + " iterations" +
           (loop.iterations_fit ? "" : fmt::format(" modulo 2^{}", loop.iterations_bits));
  std::vector<std::string> conditions;
  size_t unknown = 0, exceptions = 0;
  for (const ExplainedExit &exit : loop.exits) {
    exceptions += exit.by_exception;
    if (exit.leaves_if.empty())
      unknown += !exit.by_exception;
    else
      conditions.push_back(exit.leaves_if);
  }
  if (loop.exits.size() == exceptions)
    return exceptions ? "left by exceptions only" : "never left";
  if (conditions.size() + unknown > 3)
    return fmt::format("left at {} places", conditions.size() + unknown);
  std::string text =
      conditions.empty() ? "" : fmt::format("left if {}", fmt::join(conditions, " or if "));
  if (unknown)
    text += fmt::format("{}by a branch without a condition{}", text.empty() ? "left " : ", or ",
                        unknown > 1 ? fmt::format(" ({})", unknown) : "");
  return text;
}

std::string sentence_of(const ExplainedFunction &function, uint32_t index) {
  const ExplainedLoop &loop = function.loops[index];
  std::string text = times_text(loop);
  std::set<std::string> strides, reasons;
  uint64_t footprint = 0, own = 0;
  bool whole = true;
  for (const ExplainedAccess &access : function.accesses) {
    if (access.loop != index || access.stack)
      continue;
    own++;
    if (access.stride)
      strides.insert(fmt::format("{}", *access.stride));
    if (!access.why_not_affine.empty())
      reasons.insert(access.why_not_affine);
    whole &= access.footprint.has_value();
    footprint += access.footprint.value_or(0);
  }
  if (own) {
    text += fmt::format("; {} access{}", own, own == 1 ? "" : "es");
    if (!strides.empty())
      text += fmt::format(", stride{} {} B", strides.size() == 1 ? "" : "s", listed(strides));
    if (whole && footprint)
      text += fmt::format(", {} at most", base::format_bytes(double(footprint)));
  } else {
    text += "; no accesses but of inner loops and the stack";
  }
  if (!reasons.empty()) {
    text += "; not affine: " + *reasons.begin();
    if (reasons.size() > 1)
      text += fmt::format(", and {} more", reasons.size() - 1);
  }
  return text;
}

void explain_exits(const FlowGraph &graph, const TripCount &trips, const Forms &forms,
                   ExplainedLoop &loop) {
  for (const LoopExit &exit : trips.exits) {
    ExplainedExit shown;
    shown.pc = graph.code.instructions[exit.instruction].address;
    shown.by_exception = exit.by_exception;
    if (exit.condition)
      shown.leaves_if = forms.text(*exit.condition);
    bool known = std::any_of(loop.exits.begin(), loop.exits.end(),
                             [&](const ExplainedExit &other) { return other.pc == shown.pc; });
    if (!known) // of a copied block
      loop.exits.push_back(std::move(shown));
  }
}

} // namespace

void explain_course(const FlowGraph &graph, const Ssa &ssa, const Forms &forms, ExprId form,
                    ExplainedAccess &access) {
  if (access.loop == binary::Loop::kNone)
    return;
  forms.definitions(form, [&](ValueId value) {
    const Value &made = ssa.values[value.v];
    if (access.affine || !access.why_not_affine.empty())
      return;
    uint32_t loop = access.loop;
    while (loop != binary::Loop::kNone && !ssa.loops.contains(loop, made.node))
      loop = ssa.loops.all[loop].parent;
    if (loop != binary::Loop::kNone)
      access.why_not_affine =
          fmt::format("{}, {} at {:#x}, is made anew in each iteration of {}", forms.name(value),
                      origin_of(graph, made), ssa.address_of(graph, made),
                      ssa.loops.all[loop].irreducible ? "a loop with several entries"
                                                      : forms.counter_name(loop));
  });
  if (ssa.loops.all[access.loop].irreducible || !forms.invariant(form, access.loop))
    return;
  const Expressions &expressions = forms.expressions();
  const Expr &node = expressions[form];
  int64_t stride = 0;
  if (node.kind == ExprKind::sum) {
    for (const Term &term : expressions.terms(form)) {
      if (expressions[term.of].kind == ExprKind::counter &&
          expressions[term.of].value == access.loop)
        stride = static_cast<int64_t>(term.coefficient);
      else if (counts(expressions, term.of, access.loop))
        return;
    }
  } else if (counts(expressions, form, access.loop)) {
    return;
  }
  access.stride = stride;
}

void count_in_loops(const FlowGraph &graph, const Ssa &ssa, std::span<const AccessInLoops> accesses,
                    ExplainedFunction &function) {
  std::vector<bool> seen(graph.blocks.size(), false); // blocks may have copies
  for (uint32_t node : ssa.dominators.order)
    if (uint32_t block = ssa.nodes[node].block; block != Node::kNoBlock && !seen[block]) {
      seen[block] = true;
      for (uint32_t loop = ssa.loops.innermost[node]; loop != binary::Loop::kNone;
           loop = ssa.loops.all[loop].parent)
        function.loops[loop].instructions += graph.blocks[block].count;
    }
  for (const AccessInLoops &access : accesses)
    for (uint32_t loop = access.stack ? binary::Loop::kNone : access.loop;
         loop != binary::Loop::kNone; loop = ssa.loops.all[loop].parent) {
      function.loops[loop].accesses++;
      function.loops[loop].affine += access.affine;
    }
}

// Whether the low bits are all of a number of iterations. That s32(…) is not negative is taken for granted.
bool fits(const binary::Expressions &expressions, binary::ExprId times, unsigned bits) {
  const binary::Expr &node = expressions[times];
  if (bits == 64 || (node.kind == binary::ExprKind::sign_extend && 8 * node.width <= bits))
    return true;
  return expressions.most(times) >> bits == 0;
}

void say_of_loops(const FlowGraph &graph, const Ssa &ssa, Forms &forms,
                  ExplainedFunction &function) {
  for (uint32_t index = 0; index < function.loops.size(); index++) {
    ExplainedLoop &loop = function.loops[index];
    TripCount trips = trip_count(graph, ssa, forms, index);
    explain_exits(graph, trips, forms, loop);
    if (!trips.times.known())
      continue;
    loop.iterations = forms.text(trips.times);
    loop.iterations_bits = trips.bits;
    loop.iterations_fit = fits(forms.expressions(), trips.times, trips.bits);
    if (forms.expressions().is_constant(trips.times)) {
      uint64_t times = forms.expressions()[trips.times].value;
      if (times == 0 && trips.bits < 64)
        times = uint64_t{1} << trips.bits;
      if (times)
        loop.iteration_count = times;
    }
  }
  for (ExplainedAccess &access : function.accesses)
    if (access.loop != binary::Loop::kNone && access.stride)
      if (auto times = function.loops[access.loop].iteration_count) {
        uint64_t step = access.stride < 0 ? 0 - static_cast<uint64_t>(*access.stride)
                                          : static_cast<uint64_t>(*access.stride);
        uint64_t each = std::min<uint64_t>(step, access.size), bytes;
        if (!__builtin_mul_overflow(*times - 1, each, &bytes))
          access.footprint = bytes + access.size;
      }
  for (uint32_t index = 0; index < function.loops.size(); index++)
    function.loops[index].sentence = sentence_of(function, index);
}

} // namespace analyze
