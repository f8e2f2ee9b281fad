// Jump tables, found by executing the way to the jump symbolically.
//
// Compilers differ in the instructions that they use and in where the index is checked, but not in
// what they compute: the target is an entry of 8 bytes, or of 4 added to a constant, at a constant
// plus a multiple of something that a branch on the way has compared with a constant. So the
// registers on the way are expressions (binary/expression.h), stores to the stack are remembered (-O0
// keeps the index there), and the branch gives the bound. Matching sequences of instructions, which
// most tools do, was refused: it is one more pattern for each compiler and version.

#include "binary/jump_tables.h"

#include "abi/uop_step.h"
#include "binary/effects.h"
#include "binary/expression.h"

#include <algorithm>
#include <array>

namespace binary {
namespace {

struct Stored {
  ExprId address, value;
  unsigned width;
};
struct Condition {
  unsigned test; // if_o …
  ExprId flags;
  bool holds;
};

} // namespace

class PathExecutor::Way {
public:
  Way(const image::Executable &executable, const Code &code)
      : executable_(executable), code_(code) {}
  const image::Executable &executable() const { return executable_; }

  void begin(const Constants &before) {
    expressions.clear();
    target = {};
    conditions.clear();
    registers_.fill({});
    changed_.fill(0);
    stores_.clear();
    labels_.clear();
    state_ = 0;
    registers_[ASSAY_REG_ZERO] = expressions.constant(0);
    bias_ = in(ASSAY_REG_BIAS);
    for (unsigned reg = 0; reg < before.size(); reg++)
      if (before[reg].kind == Constant::known)
        registers_[reg] = expressions.constant(before[reg].value);
      else if (before[reg].kind == Constant::address)
        registers_[reg] = expressions.add(bias_, expressions.constant(before[reg].value));
  }

  void execute(const PathPiece &piece) {
    for (uint32_t index : piece.instructions) {
      const Instruction &instruction = code_.instructions[index];
      for (const assay_uop &uop : code_.uops_of(instruction))
        execute(uop, piece.taken);
      if (instruction.is_call())
        after_call(instruction);
      if (instruction.opaque)
        forget(code_.touched_by(instruction).writes);
    }
  }

  Expressions expressions;
  ExprId target{}; // of the last jump
  std::vector<Condition> conditions;
  bool is_bias(ExprId id) const { return id == bias_; }
  // The bias plus a constant.
  bool is_image_address(ExprId id) const {
    auto terms = expressions.terms(id);
    return expressions[id].kind == ExprKind::sum && terms.size() == 1 && is_bias(terms[0].of) &&
           terms[0].coefficient == 1;
  }
  uint64_t label_of(ExprId load) const {
    auto found = std::find_if(labels_.rbegin(), labels_.rend(),
                              [&](const Label &each) { return each.load == load; });
    return found == labels_.rend() ? 0 : found->constant;
  }

private:
  void forget(VariableSet written) {
    for (unsigned reg = 0; reg < registers_.size(); reg++)
      if (unsigned variable = variable_of(reg); variable < kVariables && written & bit(variable))
        registers_[reg] = expressions.unknown();
    for (unsigned variable = kVectors; variable < kVariables; variable++)
      changed_[variable] += (written & bit(variable)) != 0;
  }

  // What a register holds: itself, until something else was put there.
  ExprId in(unsigned reg) {
    if (reg >= ASSAY_REG_LANES)
      return expressions.definition(reg + uint64_t{ASSAY_REG_COUNT} * changed_[variable_of(reg)]);
    if (!registers_[reg].known())
      registers_[reg] = expressions.definition(reg);
    return registers_[reg];
  }
  ExprId operand_b(const assay_uop &uop) {
    return has_immediate(uop) ? expressions.constant(static_cast<uint64_t>(uop.imm)) : in(uop.b);
  }
  ExprId operand_c(const assay_uop &uop) {
    return has_immediate(uop) ? expressions.constant(0) : in(uop.c);
  }
  ExprId address(const assay_uop &uop) {
    return expressions.address(in(uop.a), in(uop.b), uop.shift, in(uop.c), uop.i);
  }

  void execute(const assay_uop &uop, bool taken) {
    if (uop.dst >= ASSAY_REG_LANES && uop.op != ASSAY_UOP_store && uop.op != ASSAY_UOP_store_if) {
      // Indexes are not computed in vectors; but one that was taken out of a vector before is another
      // value than one that is taken out after this.
      changed_[variable_of(uop.dst)]++;
      return;
    }
    switch (uop.op) {
    case ASSAY_UOP_load: {
      uint64_t constant = constant_of(uop);
      registers_[uop.dst] = load(address(uop), uop.width);
      labels_.push_back({registers_[uop.dst], constant});
      break;
    }
    case ASSAY_UOP_store:
      store({address(uop), uop.dst < ASSAY_REG_LANES ? in(uop.dst) : expressions.unknown(),
             uop.width});
      break;
    case ASSAY_UOP_load_if: registers_[uop.dst] = expressions.unknown(); break;
    case ASSAY_UOP_store_if: forget_memory(); break;
    case ASSAY_UOP_jump:
      target =
          expressions.add(in(uop.a), expressions.constant(static_cast<uint64_t>(int64_t{uop.i})));
      break;
    case ASSAY_UOP_branch: {
      const Expr &condition = expressions[in(uop.b)];
      if (condition.kind == ExprKind::operation && assay_uop_is_condition(condition.op))
        conditions.push_back({condition.op, expressions.terms(in(uop.b))[0].of, taken});
      break;
    }
    case ASSAY_UOP_opaque:
    case ASSAY_UOP_lane_clear: break;
    default:
      // Floating point depends on more than its operands.
      registers_[uop.dst] = assay_uop_reads_modes(uop.op) || uop.a >= ASSAY_REG_X87
                                ? expressions.unknown()
                                : expressions.apply(uop, in(uop.a), operand_b(uop), operand_c(uop));
    }
  }

  // The part of an address that is in the instruction, and in registers that hold a constant.
  uint64_t constant_of(const assay_uop &uop) {
    auto sum = static_cast<uint64_t>(int64_t{uop.i});
    for (unsigned reg : {unsigned{uop.a}, unsigned{uop.b}, unsigned{uop.c}}) {
      if (reg == uop.b && uop.shift)
        continue;
      ExprId value = in(reg);
      if (is_image_address(value) || expressions.is_constant(value))
        sum += expressions[value].value;
    }
    return sum;
  }

  ExprId load(ExprId from, unsigned width) {
    for (auto stored = stores_.rbegin(); stored != stores_.rend(); ++stored) {
      const std::optional<uint64_t> distance = expressions.distance(from, stored->address);
      if (!distance) {
        if (is_image(from) != is_image(stored->address))
          continue; // the stack and the image are apart
        return expressions.unknown();
      }
      const uint64_t offset = *distance;
      if (offset == 0 && stored->width >= width)
        return expressions.zero_extend(stored->value, width);
      if (offset < stored->width || offset + width > offset + 8 || -offset < width)
        return expressions.unknown(); // overlaps in part
    }
    return expressions.load(width, from, state_);
  }
  void store(Stored stored) { stores_.push_back(stored); }
  void forget_memory() {
    stores_.clear();
    state_++;
  }
  void after_call(const Instruction &call) {
    ExprId stack = expressions.add(in(ASSAY_REG_RSP), expressions.constant(8));
    for (unsigned reg = 0; reg <= ASSAY_REG_FLAGS; reg++)
      if (reg >= 16 || !(call.kept & register_bit(reg)))
        registers_[reg] = expressions.unknown();
    if (call.kept & register_bit(ASSAY_REG_RSP))
      registers_[ASSAY_REG_RSP] = stack;
    forget_memory(); // the callee may have been given addresses of the frame
  }
  // Whether an address is the image's own, plus something.
  bool is_image(ExprId address) const {
    if (!executable_.position_independent())
      return !executable_.bytes(expressions.offset_of(address), 1).empty();
    auto terms = expressions.terms(address);
    return expressions[address].kind == ExprKind::sum &&
           std::any_of(terms.begin(), terms.end(),
                       [&](const Term &term) { return term.of == bias_; });
  }

  const image::Executable &executable_;
  const Code &code_;
  std::array<ExprId, ASSAY_REG_LANES> registers_;  // of vectors none
  std::array<uint64_t, kVariables + 1> changed_{}; // vectors, how often so far
  std::vector<Stored> stores_;
  struct Label {
    ExprId load;
    uint64_t constant; // in the instruction that loads
  };
  std::vector<Label> labels_; // in the order of execution
  uint64_t state_ = 0;
  ExprId bias_;
};

namespace {

using Way = PathExecutor::Way;

// A constant, with or without the bias, plus coefficient * one term.
struct Scaled {
  uint64_t offset = 0, coefficient = 0;
  ExprId of;
};
std::optional<Scaled> scaled(const Way &way, ExprId id) {
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
bool limits(const Way &way, const Condition &condition, uint64_t &limit, ExprId &compared,
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
std::optional<Scaled> indexed(Way &way, ExprId id, unsigned by) {
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
std::optional<uint64_t> masked(const Way &way, ExprId id) {
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
void bound_difference(const Way &way, ExprId index, TableShape &shape) {
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

void find_bound(Way &way, ExprId index, TableShape &shape) {
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

void execute(const Code &code, const Instruction &instruction, Constants &constants) {
  for (const assay_uop &uop : code.uops_of(instruction)) {
    if (uop.op == ASSAY_UOP_store || uop.op == ASSAY_UOP_store_if || uop.dst >= constants.size())
      continue;
    Constant made{Constant::varies, 0};
    auto offset = static_cast<uint64_t>(int64_t{uop.i});
    if (uop.op == ASSAY_UOP_lea && uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO &&
        uop.width == 8)
      made = {Constant::address, offset};
    else if (uop.op == ASSAY_UOP_copy && uop.width == 8 && uop.a < constants.size())
      made = constants[uop.a];
    else if (uop.op == ASSAY_UOP_or && uop.a == ASSAY_REG_ZERO && has_immediate(uop))
      made = {Constant::known, static_cast<uint64_t>(uop.imm) & uop_mask(uop.width)};
    constants[uop.dst] = made;
  }
  VariableSet written = code.touched_by(instruction).writes;
  if (instruction.is_call())
    written = ~VariableSet{instruction.kept};
  for (unsigned reg = 0; reg < constants.size(); reg++)
    if (written & bit(reg))
      constants[reg] = {Constant::varies, 0};
}

PathExecutor::PathExecutor(const image::Executable &executable, const Code &code)
    : way_(std::make_unique<Way>(executable, code)) {}
PathExecutor::~PathExecutor() = default;

const image::Executable &PathExecutor::executable() const {
  return way_->executable();
}

std::optional<TableShape> PathExecutor::table_shape(const Path &path,
                                                    std::optional<uint64_t> &computed) {
  Way &way = *way_;
  way.begin(*path.before);
  for (unsigned i = 0; i < path.count; i++)
    way.execute(path.pieces[i]);
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
