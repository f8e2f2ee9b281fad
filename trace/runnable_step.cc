#include "trace/runnable_step.h"

#include "abi/uop_step.h"

namespace trace {
namespace {

using Op = RunnableStep::Op;

Op op_of(const assay_uop &uop) {
  const bool has_constant = binary::has_immediate(uop);
  if (uop.width == 8)
    switch (uop.op) {
    case ASSAY_UOP_copy: return has_constant ? Op::compute : Op::copy;
    case ASSAY_UOP_add: return has_constant ? Op::add_constant : Op::add;
    case ASSAY_UOP_lea: return has_constant ? Op::compute : Op::lea;
    case ASSAY_UOP_sign_extend: return has_constant ? Op::compute : Op::sign_extend;
    default: return Op::compute;
    }
  if (uop.width == 4)
    switch (uop.op) {
    case ASSAY_UOP_copy: return has_constant ? Op::compute : Op::copy32;
    case ASSAY_UOP_add: return has_constant ? Op::add_constant32 : Op::compute;
    case ASSAY_UOP_lea: return has_constant ? Op::compute : Op::lea32;
    default: return Op::compute;
    }
  return Op::compute;
}

Op op_of(const SkeletonStep &step) {
  switch (step.kind) {
  case SkeletonStep::Kind::in:
    return step.size == 1 ? Op::in1 : step.size == 2 ? Op::in2 : step.size == 4 ? Op::in4 : Op::in8;
  case SkeletonStep::Kind::compute: return op_of(step.uop);
  case SkeletonStep::Kind::access:
    return binary::has_immediate(step.uop) ? Op::access_at : Op::access;
  case SkeletonStep::Kind::repeat: return Op::repeat;
  case SkeletonStep::Kind::compare: return Op::compare;
  }
  __builtin_unreachable();
}

// The same by simpler operations: sums of a register and a constant.
SkeletonStep simplified(SkeletonStep step) {
  assay_uop &uop = step.uop;
  const bool computes = step.kind == SkeletonStep::Kind::compute;
  const bool is_sum = step.kind >= SkeletonStep::Kind::access || uop.op == ASSAY_UOP_lea;
  if (is_sum && !binary::has_immediate(uop) && uop.b == ASSAY_REG_ZERO && uop.c == ASSAY_REG_ZERO) {
    const int64_t offset = uop.i;
    uop.b = ASSAY_UOP_IMMEDIATE;
    uop.imm = offset;
    if (computes)
      uop.op = ASSAY_UOP_add;
  }
  if (computes && uop.op == ASSAY_UOP_sub && binary::has_immediate(uop) && uop.imm != INT64_MIN) {
    uop.op = ASSAY_UOP_add;
    uop.imm = -uop.imm;
  }
  return step;
}

} // namespace

RunnableStep::RunnableStep(const SkeletonStep &step, uint32_t site_)
    : write(step.write), size(step.size), site(site_) {
  const SkeletonStep simple = simplified(step);
  op = op_of(simple);
  uop = simple.uop;
}

void RunnableStep::compute(SkeletonVariables &v) const {
  const bool constant = binary::has_immediate(uop);
  const uint64_t a = v[uop.a], b = constant ? static_cast<uint64_t>(uop.imm) : v[uop.b];
  v[uop.dst] = assay_uop_value(&uop, a, b, constant ? 0 : v[uop.c]);
}

} // namespace trace
