// Registers hold expressions (binary/expression.h); stores are remembered, because -O0 keeps indexes on
// the stack. Memory that nothing was stored to is named by its address and by how often it has been
// forgotten. The stack and the image are taken to be apart.

#include "binary/symbolic_path.h"

#include "abi/uop_step.h"
#include "binary/effects.h"

namespace binary {

void SymbolicPath::execute(const Path &path) {
  begin(*path.before);
  for (unsigned i = 0; i < path.count; i++)
    execute(path.pieces[i]);
}

void SymbolicPath::begin(const Constants &before) {
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

void SymbolicPath::execute(const PathPiece &piece) {
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

bool SymbolicPath::is_image_address(ExprId id) const {
  auto terms = expressions.terms(id);
  return expressions[id].kind == ExprKind::sum && terms.size() == 1 && is_bias(terms[0].of) &&
         terms[0].coefficient == 1;
}

uint64_t SymbolicPath::label_of(ExprId load) const {
  auto found = std::find_if(labels_.rbegin(), labels_.rend(),
                            [&](const Label &each) { return each.load == load; });
  return found == labels_.rend() ? 0 : found->constant;
}

void SymbolicPath::forget(VariableSet written) {
  for (unsigned reg = 0; reg < registers_.size(); reg++)
    if (unsigned variable = variable_of(reg); variable < kVariables && written & bit(variable))
      registers_[reg] = expressions.unknown();
  for (unsigned variable = kVectors; variable < kVariables; variable++)
    changed_[variable] += (written & bit(variable)) != 0;
}

ExprId SymbolicPath::in(unsigned reg) {
  if (reg >= ASSAY_REG_LANES)
    return expressions.definition(reg + uint64_t{ASSAY_REG_COUNT} * changed_[variable_of(reg)]);
  if (!registers_[reg].known())
    registers_[reg] = expressions.definition(reg);
  return registers_[reg];
}

void SymbolicPath::execute(const assay_uop &uop, bool taken) {
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
    store(
        {address(uop), uop.dst < ASSAY_REG_LANES ? in(uop.dst) : expressions.unknown(), uop.width});
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

uint64_t SymbolicPath::constant_of(const assay_uop &uop) {
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

ExprId SymbolicPath::load(ExprId from, unsigned width) {
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

void SymbolicPath::after_call(const Instruction &call) {
  ExprId stack = expressions.add(in(ASSAY_REG_RSP), expressions.constant(8));
  for (unsigned reg = 0; reg <= ASSAY_REG_FLAGS; reg++)
    if (reg >= 16 || !(call.kept & register_bit(reg)))
      registers_[reg] = expressions.unknown();
  if (call.kept & register_bit(ASSAY_REG_RSP))
    registers_[ASSAY_REG_RSP] = stack;
  forget_memory(); // the callee may have been given addresses of the frame
}

bool SymbolicPath::is_image(ExprId address) const {
  if (!executable_.position_independent())
    return !executable_.bytes(expressions.offset_of(address), 1).empty();
  auto terms = expressions.terms(address);
  return expressions[address].kind == ExprKind::sum &&
         std::any_of(terms.begin(), terms.end(),
                     [&](const Term &term) { return term.of == bias_; });
}

} // namespace binary
