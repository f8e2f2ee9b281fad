// A variable that an iteration takes from the one before must change by constants, and what addresses and
// the comparison need be a sum of such variables. Then all of that is linear in the number of the
// iteration, modulo 2 to its bits; so two iterations say how it goes on.

#include "trace/steady_loop.h"

#include "abi/uop_step.h"
#include "binary/effects.h"

#include <algorithm>
#include <map>

namespace trace {
namespace {

constexpr uint8_t kWhole = 8;
constexpr uint64_t kNever = UINT64_MAX;

// It takes the carry from the flags before, which no condition may ask for then.
bool keeps_carry(const assay_uop &uop) {
  return uop.op == ASSAY_UOP_flags_dec || uop.op == ASSAY_UOP_flags_inc;
}

// f(variable) for each operand but a carry that is kept.
template <class F> void each_operand(const assay_uop &uop, F f) {
  f(uop.a);
  if (binary::has_immediate(uop) || keeps_carry(uop))
    return;
  f(uop.b);
  f(uop.c);
}

bool adds_constant(const assay_uop &uop) {
  return (uop.op == ASSAY_UOP_add || uop.op == ASSAY_UOP_sub) && uop.a == uop.dst &&
         binary::has_immediate(uop);
}

// Whether the result is linear in the operands.
bool is_sum(const assay_uop &uop) {
  switch (uop.op) {
  case ASSAY_UOP_copy:
  case ASSAY_UOP_lea:
  case ASSAY_UOP_add:
  case ASSAY_UOP_sub:
  case ASSAY_UOP_neg: return true;
  case ASSAY_UOP_shl:
  case ASSAY_UOP_mul: return binary::has_immediate(uop);
  default: return false;
  }
}

// Whether flags of this kind say how `a` and `b` of a comparison are to each other.
bool compares(const assay_uop &flags, unsigned condition) {
  switch (condition) {
  case ASSAY_UOP_if_e:
  case ASSAY_UOP_if_ne:
    return flags.op == ASSAY_UOP_flags_sub || flags.op == ASSAY_UOP_flags_dec ||
           flags.op == ASSAY_UOP_flags_inc || flags.op == ASSAY_UOP_flags_add;
  case ASSAY_UOP_if_b:
  case ASSAY_UOP_if_ae:
  case ASSAY_UOP_if_be:
  case ASSAY_UOP_if_a:
  case ASSAY_UOP_if_l:
  case ASSAY_UOP_if_ge:
  case ASSAY_UOP_if_le:
  case ASSAY_UOP_if_g: return flags.op == ASSAY_UOP_flags_sub;
  default: return false;
  }
}

// Variables that are read before they are written, and written. Nullopt if an iteration changes one of
// them by more than constants. With the bytes in which they count.
std::optional<std::map<uint16_t, uint8_t>> carried_in(std::span<const RunnableStep> steps) {
  std::array<bool, kSkeletonVariables> is_read{}, is_written{};
  bool keeps = false;
  uint32_t asked = 0;
  for (const RunnableStep &step : steps) {
    each_operand(step.uop, [&](unsigned of) {
      is_read[of] |= !is_written[of];
      asked += of == ASSAY_REG_FLAGS;
    });
    if (!step.is_computation())
      continue;
    is_written[step.uop.dst] = true;
    keeps |= keeps_carry(step.uop);
  }
  if (keeps && asked > 1) // by what may want the carry of the iteration before
    return std::nullopt;
  std::map<uint16_t, uint8_t> carried;
  for (const RunnableStep &step : steps)
    if (step.is_computation() && is_read[step.uop.dst])
      if (!adds_constant(step.uop) ||
          carried.try_emplace(step.uop.dst, step.uop.width).first->second != step.uop.width)
        return std::nullopt;
  return carried;
}

uint64_t low(uint64_t value, unsigned width) {
  return value & uop_mask(width);
}

// How often `value` can go on by `step` until it passes an end of the numbers of so many bytes, signed or not.
uint64_t steps_within(uint64_t value, uint64_t step, unsigned width) {
  const int64_t by = uop_signed(step, width);
  if (by == 0)
    return kNever;
  const uint64_t half = uop_mask(width) / 2 + 1;
  const uint64_t unsigned_at = low(value, width), signed_at = low(value + half, width);
  if (by > 0)
    return (uop_mask(width) - std::max(unsigned_at, signed_at)) / static_cast<uint64_t>(by);
  return std::min(unsigned_at, signed_at) / (0 - static_cast<uint64_t>(by));
}

} // namespace

void SteadyLoop::Step::go(uint64_t iterations, SkeletonVariables &v) const {
  if (iterations)
    v[variable] = low(v[variable] + iterations * by, bytes);
}

std::optional<SteadyLoop> SteadyLoop::of(std::span<const RunnableStep> steps, const End &end) {
  for (const RunnableStep &step : steps)
    if (!step.is_access() && !step.is_computation())
      return std::nullopt;
  const auto carried = carried_in(steps);
  if (!carried)
    return std::nullopt;
  SteadyLoop loop;
  loop.steps_.assign(steps.begin(), steps.end());
  loop.end_ = end;
  loop.carried_.assign(carried->begin(), carried->end());
  // By variable: how many of its low bytes are linear.
  std::array<uint8_t, kSkeletonVariables> widths;
  widths.fill(kWhole);
  for (const auto &[variable, bytes] : *carried)
    widths[variable] = bytes;
  std::optional<uint32_t> flags;
  uint8_t width_of_flags = 0;
  for (uint32_t s = 0; s < steps.size(); s++) {
    const assay_uop &uop = steps[s].uop;
    uint8_t width = kWhole;
    each_operand(uop, [&](unsigned of) { width = std::min(width, widths[of]); });
    if (steps[s].is_access()) {
      if (width < kWhole)
        return std::nullopt;
      continue;
    }
    if (uop.dst == ASSAY_REG_FLAGS) {
      flags = s;
      width_of_flags = width;
    }
    if (!end.is_count && uop.dst == end.variable) {
      if (!flags || uop.a != ASSAY_REG_FLAGS || !compares(steps[*flags].uop, uop.op) ||
          width_of_flags < steps[*flags].uop.width)
        return std::nullopt;
      loop.compares_ = *flags;
      loop.condition_ = uop.op;
    }
    if (!carried->contains(uop.dst))
      widths[uop.dst] = is_sum(uop) ? std::min(width, uop.width) : uint8_t{0};
  }
  const bool ends = end.is_count ? widths[end.variable] == kWhole : loop.condition_ != 0;
  return ends ? std::optional(std::move(loop)) : std::nullopt;
}

SteadyLoop::Operands SteadyLoop::run_iteration(SkeletonVariables &v,
                                               std::vector<profile::Access> &accesses) const {
  Operands operands{};
  for (size_t s = 0; s < steps_.size(); s++) {
    const RunnableStep &step = steps_[s];
    if (step.is_access()) {
      accesses.push_back({step.address(v), step.site, step.size, step.write});
      continue;
    }
    if (!end_.is_count && s == compares_)
      operands = {v[step.uop.a], binary::has_immediate(step.uop)
                                     ? static_cast<uint64_t>(step.uop.imm)
                                     : v[step.uop.b]};
    step.compute(v);
  }
  if (end_.is_count)
    operands = {v[end_.variable], v[kLoopEnd]};
  // What is added is compared with its negative.
  else if (const unsigned op = steps_[compares_].uop.op; op == ASSAY_UOP_flags_add)
    operands.b = 0 - operands.b;
  else if (op == ASSAY_UOP_flags_dec)
    operands.b = 1;
  else if (op == ASSAY_UOP_flags_inc)
    operands.b = uint64_t{0} - 1;
  return operands;
}

SteadyLoop::Iterations SteadyLoop::iterations(const SkeletonVariables &from) const {
  Iterations iterations;
  std::vector<profile::Access> first, second;
  SkeletonVariables v = from;
  const Operands operands = run_iteration(v, first);
  for (const auto &[variable, bytes] : carried_)
    iterations.steps.push_back({variable, bytes, v[variable] - from[variable]});
  const Operands next = run_iteration(v, second);
  for (size_t i = 0; i < first.size(); i++)
    iterations.body.push_back({first[i], second[i].address - first[i].address});
  const Operands step = {next.a - operands.a, next.b - operands.b};
  const bool until_equal =
      end_.is_count || condition_ == ASSAY_UOP_if_ne || condition_ == ASSAY_UOP_if_e;
  iterations.count =
      until_equal ? iterations_until_equal(operands, step) : iterations_in_order(operands, step);
  return iterations;
}

// Of a linear difference: iterations before it is 0, if it comes to be 0 before it passes the end of the numbers.
uint64_t SteadyLoop::iterations_until_equal(const Operands &first, const Operands &step) const {
  const bool while_unequal = end_.is_count || (condition_ == ASSAY_UOP_if_ne) == end_.while_set;
  const unsigned width = end_.is_count ? kWhole : steps_[compares_].uop.width;
  uint64_t difference = low(first.a - first.b, width);
  int64_t by = uop_signed(step.a - step.b, width);
  if (!while_unequal || by == 0)
    return 0;
  if (by > 0)
    difference = low(0 - difference, width);
  const uint64_t each = by > 0 ? static_cast<uint64_t>(by) : 0 - static_cast<uint64_t>(by);
  return difference % each == 0 ? difference / each : 0;
}

bool SteadyLoop::goes_on(const Operands &operands) const {
  assay_uop flags = steps_[compares_].uop, asks{};
  asks.op = static_cast<uint8_t>(condition_);
  asks.width = kWhole;
  const uint64_t made = assay_uop_value(&flags, operands.a, operands.b, 0);
  return (assay_uop_value(&asks, made, 0, 0) != 0) == end_.while_set;
}

// As long as neither operand passes the end of the numbers, their difference is linear and changes
// its sign once at most.
uint64_t SteadyLoop::iterations_in_order(const Operands &first, const Operands &step) const {
  const unsigned width = steps_[compares_].uop.width;
  const auto after = [&](uint64_t iterations) {
    return Operands{first.a + iterations * step.a, first.b + iterations * step.b};
  };
  uint64_t goes = 0, last = std::min(steps_within(first.a, step.a, width),
                                     steps_within(first.b, step.b, width));
  if (last == kNever || !goes_on(first))
    return 0;
  if (goes_on(after(last)))
    return last + 1;
  while (last - goes > 1) {
    const uint64_t middle = goes + (last - goes) / 2;
    (goes_on(after(middle)) ? goes : last) = middle;
  }
  return last;
}

} // namespace trace
