// Jump tables, found by executing the way to the jump symbolically.
//
// Compilers differ in the instructions that they use and in where the index is checked, but not in
// what they compute: the target is an entry of 8 bytes, or of 4 added to a constant, at a constant
// plus a multiple of something that a branch on the way has compared with a constant. So the
// registers on the way are expressions (binary/symbolic_path.cc), and the branch gives the bound.
// Matching sequences of instructions, which most tools do, was refused: it is one more pattern for
// each compiler and version.

#include "binary/jump_tables.h"

#include "abi/uop_step.h"
#include "binary/expression.h"

namespace binary {
namespace {

// A constant, with or without the bias, plus coefficient * one term.
struct Scaled {
  uint64_t offset = 0, coefficient = 0;
  ExprId of;
};
std::optional<Scaled> scaled(const SymbolicPath &way, ExprId id) {
  const Expr &node = way.expressions[id];
  Scaled result;
  if (node.kind != ExprKind::sum) {
    result.coefficient = 1;
    result.of = id;
    return result;
  }
  result.offset = node.value;
  for (const Term &term : way.expressions.terms(id)) {
    if (way.is_bias(term.of) && term.coefficient == 1)
      continue;
    if (result.of.known())
      return std::nullopt;
    result.of = term.of;
    result.coefficient = term.coefficient;
  }
  return result.of.known() ? std::optional(result) : std::nullopt;
}

// Whether a condition says that the compared value is at most `limit`, unsigned.
bool limits(const SymbolicPath &way, const Condition &condition, uint64_t &limit, ExprId &compared,
            unsigned &width) {
  const Expr &flags = way.expressions[condition.flags];
  if (flags.kind != ExprKind::operation || flags.op != ASSAY_UOP_flags_sub)
    return false;
  auto operands = way.expressions.terms(condition.flags);
  width = flags.width;
  uint64_t mask = uop_mask(width);
  if (way.expressions.is_constant(operands[1].of)) { // x - K
    compared = operands[0].of;
    uint64_t k = way.expressions[operands[1].of].value & mask;
    bool below = condition.test == ASSAY_UOP_if_b && condition.holds;
    below |= condition.test == ASSAY_UOP_if_ae && !condition.holds;
    bool at_most = condition.test == ASSAY_UOP_if_be && condition.holds;
    at_most |= condition.test == ASSAY_UOP_if_a && !condition.holds;
    bool equal = condition.test == ASSAY_UOP_if_e && condition.holds;
    equal |= condition.test == ASSAY_UOP_if_ne && !condition.holds;
    limit = at_most || equal ? k : k - 1;
    return at_most || equal || (below && k > 0);
  }
  if (way.expressions.is_constant(operands[0].of)) { // K - x
    compared = operands[1].of;
    uint64_t k = way.expressions[operands[0].of].value & mask;
    bool at_most = condition.test == ASSAY_UOP_if_ae && condition.holds;
    at_most |= condition.test == ASSAY_UOP_if_b && !condition.holds;
    limit = k;
    return at_most;
  }
  return false;
}

// A constant, with or without the bias, plus `by` times an index of one or more terms: e - s.
std::optional<Scaled> indexed(SymbolicPath &way, ExprId id, unsigned by) {
  const Expr node = way.expressions[id];
  if (node.kind != ExprKind::sum)
    return std::nullopt;
  Scaled result{node.value, by, way.expressions.constant(0)};
  for (size_t i = 0, count = way.expressions.terms(id).size(); i < count; i++) {
    Term term = way.expressions.terms(id)[i];
    if (way.is_bias(term.of) && term.coefficient == 1)
      continue;
    auto coefficient = static_cast<int64_t>(term.coefficient);
    if (coefficient % by)
      return std::nullopt;
    result.of = way.expressions.combine(result.of, 1, term.of,
                                        static_cast<uint64_t>(coefficient / int64_t{by}));
  }
  return way.expressions.is_constant(result.of) ? std::nullopt : std::optional(result);
}

// The constant that a value is masked with.
std::optional<uint64_t> masked(const SymbolicPath &way, ExprId id) {
  const Expr &node = way.expressions[id];
  if (node.kind != ExprKind::operation || node.op != ASSAY_UOP_and)
    return std::nullopt;
  for (const Term &operand : way.expressions.terms(id))
    if (way.expressions.is_constant(operand.of) && !way.expressions.is_constant(operand.of, 0))
      return way.expressions[operand.of].value & uop_mask(node.width);
  return std::nullopt;
}

// x - y, both of few bits, where conditions say which is greater: from -most(y) to -1, or from 1 to
// most(x). So string functions go to the code for the distance of two pointers from alignment.
void bound_difference(const SymbolicPath &way, ExprId index, TableShape &shape) {
  const Expr &node = way.expressions[index];
  auto terms = way.expressions.terms(index);
  if (node.kind != ExprKind::sum || node.value != 0 || terms.size() != 2)
    return;
  bool first_adds = terms[0].coefficient == 1;
  if (terms[0].coefficient + terms[1].coefficient != 0 ||
      (!first_adds && terms[1].coefficient != 1))
    return;
  ExprId x = terms[first_adds ? 0 : 1].of, y = terms[first_adds ? 1 : 0].of;
  constexpr uint64_t kLargest = 1 << 15;
  if (way.expressions.most(x) > kLargest || way.expressions.most(y) > kLargest)
    return;
  enum : unsigned { kLess = 1, kEqual = 2, kGreater = 4 };
  unsigned possible = kLess | kEqual | kGreater; // of x, compared with y
  for (const Condition &condition : way.conditions) {
    const Expr &flags = way.expressions[condition.flags];
    if (flags.kind != ExprKind::operation || flags.op != ASSAY_UOP_flags_sub || flags.width < 4)
      continue;
    auto compared = way.expressions.terms(condition.flags);
    bool swapped = compared[0].of == y && compared[1].of == x;
    if (!swapped && (compared[0].of != x || compared[1].of != y))
      continue;
    unsigned holds = 0;
    switch (condition.test) {
    case ASSAY_UOP_if_b: holds = kLess; break;
    case ASSAY_UOP_if_ae: holds = kEqual | kGreater; break;
    case ASSAY_UOP_if_e: holds = kEqual; break;
    case ASSAY_UOP_if_ne: holds = kLess | kGreater; break;
    case ASSAY_UOP_if_be: holds = kLess | kEqual; break;
    case ASSAY_UOP_if_a: holds = kGreater; break;
    default: continue;
    }
    holds = condition.holds ? holds : ~holds & 7;
    if (swapped)
      holds = (holds & kEqual) | (holds & kLess ? kGreater : 0) | (holds & kGreater ? kLess : 0);
    possible &= holds;
  }
  if (possible != kLess && possible != kGreater)
    return;
  shape.bounded = true;
  shape.first = possible == kLess ? 0 - way.expressions.most(y) : 1;
  shape.last = possible == kLess ? ~uint64_t{0} : way.expressions.most(x);
}

void find_bound(SymbolicPath &way, ExprId index, TableShape &shape) {
  for (const Condition &condition : way.conditions) {
    uint64_t limit;
    ExprId compared;
    unsigned width;
    if (!limits(way, condition, limit, compared, width))
      continue;
    // compared = index + distance, in the width of the comparison
    ExprId a = way.expressions.zero_extend(compared, width);
    ExprId b = way.expressions.zero_extend(index, width);
    uint64_t distance = 0;
    if (a != b) {
      ExprId difference = way.expressions.zero_extend(way.expressions.sub(compared, index), width);
      if (!way.expressions.is_constant(difference))
        continue;
      distance = way.expressions[difference].value;
    }
    uint64_t mask = uop_mask(width), first = (0 - distance) & mask;
    if (first + limit < first || first + limit > mask)
      continue;
    if (!shape.bounded || first + limit < shape.last) {
      shape.first = first;
      shape.last = first + limit;
      shape.bounded = true;
    }
  }
  shape.most = way.expressions.most(index);
  if (!shape.bounded)
    bound_difference(way, index, shape);
}

} // namespace

std::optional<TableShape> table_shape(SymbolicPath &way, const Path &path,
                                      std::optional<uint64_t> &computed) {
  way.execute(path);
  if (!way.target.known())
    return std::nullopt;
  auto target = scaled(way, way.target);
  if (target && target->coefficient != 1 && target->offset)
    computed = target->offset;
  if (!target || target->coefficient != 1)
    return std::nullopt;
  TableShape shape;
  shape.base = target->offset;
  ExprId entry = target->of;
  const Expr *node = &way.expressions[entry];
  if (node->kind == ExprKind::sign_extend && node->width == 4) {
    entry = way.expressions.terms(entry)[0].of;
    node = &way.expressions[entry];
  }
  if (node->kind != ExprKind::load && shape.base && !way.is_bias(entry))
    computed = shape.base;
  if (node->kind != ExprKind::load || (node->width != 4 && node->width != 8))
    return std::nullopt;
  shape.entry_bytes = node->width;
  if (shape.entry_bytes == 8 && shape.base != 0)
    return std::nullopt;
  shape.label = way.label_of(entry);
  ExprId where = way.expressions.terms(entry)[0].of;
  if (auto place = indexed(way, where, shape.entry_bytes)) {
    shape.address = place->offset;
    find_bound(way, place->of, shape);
    return shape;
  }
  auto place = scaled(way, where);
  // The one entry that a compiler has found to be read; read-only, because it is relative.
  if (const Expr &fixed = way.expressions[where];
      !place && shape.entry_bytes == 4 && shape.base && way.is_image_address(where)) {
    shape.address = shape.label = fixed.value;
    shape.bounded = true;
    return shape;
  }
  if (!place)
    return std::nullopt;
  shape.address = place->offset;
  // An index that a mask leaves in bytes: x & 0x78.
  auto bytes = masked(way, place->of);
  if (place->coefficient != 1 || !bytes || *bytes % shape.entry_bytes)
    return std::nullopt;
  shape.most = *bytes / shape.entry_bytes;
  return shape;
}

} // namespace binary
