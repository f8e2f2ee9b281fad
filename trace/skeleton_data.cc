// Skeletons in the file of a trace. What is read is checked to be something that can be run:
// registers that are variables, blocks that exist, micro-ops that yield values.

#include "abi/uop.h"
#include "base/units.h"
#include "binary/effects.h"
#include "trace/numbers.h"
#include "trace/trace_data.h"

namespace trace {
namespace {

using Kind = SkeletonStep::Kind;
using End = SkeletonBlock::End;

void encode(Encoder &to, const assay_uop &uop) {
  to.number(uop.a);
  to.number(binary::has_immediate(uop) ? 0 : uop.b + 1u);
  if (binary::has_immediate(uop)) {
    to.signed_number(uop.imm);
    return;
  }
  to.number(uop.c);
  to.number(uop.shift);
  to.signed_number(uop.i);
}

uint16_t variable(Decoder &from) {
  return from.bounded<uint16_t>(kSkeletonVariables - 1);
}

void decode(Decoder &from, assay_uop &uop) {
  uop.a = variable(from);
  const auto b = from.bounded<uint16_t>(kSkeletonVariables);
  if (b == 0) {
    uop.b = ASSAY_UOP_IMMEDIATE;
    uop.imm = from.signed_number();
    return;
  }
  uop.b = static_cast<uint16_t>(b - 1);
  uop.c = variable(from);
  uop.shift = from.bounded<uint8_t>(63);
  uop.i = static_cast<int32_t>(from.signed_number());
}

void encode(Encoder &to, const SkeletonStep &step, uint64_t &last) {
  to.number(static_cast<uint64_t>(step.kind) << 1 | step.write);
  to.signed_number(static_cast<int64_t>(step.pc - last));
  last = step.pc;
  if (step.kind != Kind::compute)
    to.number(step.size);
  if (step.kind == Kind::in) {
    to.number(step.uop.dst);
    return;
  }
  if (step.kind == Kind::compute) {
    to.number(step.uop.op);
    to.number(step.uop.width);
    to.number(step.uop.dst);
  }
  encode(to, step.uop);
}

SkeletonStep decode_step(Decoder &from, uint64_t &last) {
  SkeletonStep step;
  const auto header = from.bounded<uint8_t>(static_cast<uint64_t>(Kind::compare) << 1 | 1);
  step.kind = static_cast<Kind>(header >> 1);
  step.write = header & 1;
  step.pc = last += static_cast<uint64_t>(from.signed_number());
  if (step.kind != Kind::compute)
    step.size = from.bounded<uint16_t>(UINT16_MAX);
  if (step.kind == Kind::in) {
    if (step.size != 1 && step.size != 2 && step.size != 4 && step.size != 8)
      base::fail("a skeleton of the trace takes {} bytes at once", step.size);
    step.uop.dst = variable(from);
    return step;
  }
  if (step.kind == Kind::compute) {
    step.uop.op = from.bounded<uint8_t>(ASSAY_UOP_COUNT - 1);
    step.uop.width = from.bounded<uint8_t>(8);
    step.uop.dst = variable(from);
    const unsigned width = step.uop.width;
    if (!assay_uop_is_value(step.uop.op) || assay_uop_is_lane(step.uop.op) ||
        assay_uop_reads_modes(step.uop.op) || step.uop.dst == ASSAY_REG_ZERO ||
        (width != 1 && width != 2 && width != 4 && width != 8))
      base::fail("a skeleton of the trace computes something that skeletons do not");
  }
  decode(from, step.uop);
  if (step.uop.op == ASSAY_UOP_sign_extend && (step.uop.i < 0 || step.uop.i > 63))
    base::fail("a skeleton of the trace extends a sign by {} bits", step.uop.i);
  return step;
}

} // namespace

std::vector<std::byte> encode(std::span<const Skeleton> skeletons) {
  Encoder to;
  uint64_t last = 0;
  for (const Skeleton &skeleton : skeletons) {
    to.signed_number(static_cast<int64_t>(skeleton.address - last));
    last = skeleton.address;
    to.number(skeleton.blocks.size());
    for (const SkeletonBlock &block : skeleton.blocks) {
      to.signed_number(static_cast<int64_t>(block.address - last));
      last = block.address;
      to.number(static_cast<uint64_t>(block.end));
      to.number(block.condition);
      to.number(block.next.size());
      for (uint32_t next : block.next)
        to.number(next == SkeletonBlock::kOut ? 0 : uint64_t{next} + 1);
      to.number(block.steps.size());
      for (const SkeletonStep &step : block.steps)
        encode(to, step, last);
    }
  }
  return std::move(to.bytes);
}

std::vector<Skeleton> decode_skeletons(std::span<const std::byte> bytes, uint32_t count) {
  check_count(bytes, count, "skeleton");
  Decoder from(bytes);
  std::vector<Skeleton> skeletons(count);
  uint64_t last = 0;
  for (Skeleton &skeleton : skeletons) {
    skeleton.address = last += static_cast<uint64_t>(from.signed_number());
    const auto blocks = from.bounded<uint32_t>(bytes.size());
    skeleton.blocks.resize(blocks);
    for (SkeletonBlock &block : skeleton.blocks) {
      block.address = last += static_cast<uint64_t>(from.signed_number());
      block.end = from.bounded<End>(static_cast<uint64_t>(End::choose));
      block.condition = variable(from);
      block.next.resize(from.bounded<uint32_t>(bytes.size()));
      for (uint32_t &next : block.next) {
        const auto which = from.bounded<uint32_t>(blocks);
        next = which == 0 ? SkeletonBlock::kOut : which - 1;
      }
      const size_t needed = block.end == End::stop                             ? 0
                            : block.end == End::go || block.end == End::choose ? 1
                                                                               : 2;
      if (block.next.size() < needed)
        base::fail("a block of a skeleton of the trace leads to {}",
                   base::with_noun(block.next.size(), "place"));
      block.steps.resize(from.bounded<uint32_t>(bytes.size()));
      for (SkeletonStep &step : block.steps)
        step = decode_step(from, last);
    }
  }
  return skeletons;
}

} // namespace trace
