// A step of a skeleton in the form in which it runs.
#pragma once

#include "abi/uop.h"
#include "binary/effects.h"
#include "trace/skeleton.h"

#include <array>
#include <cstdint>

namespace trace {

using SkeletonVariables = std::array<uint64_t, kSkeletonVariables>;

struct RunnableStep {
  enum class Op : uint8_t {
    // SkeletonStep::Kind::in, by size
    in1,
    in2,
    in4,
    in8,
    compute, // any uop; and those that are most frequent, of 64 or 32 bits:
    copy,
    copy32,
    add,
    add_constant,
    add_constant32,
    lea,
    lea32,
    sign_extend,
    access,    // a + (b << shift) + c + i
    access_at, // a + imm
    repeat,
    compare,
  };
  Op op;
  bool write;
  uint16_t size;
  uint32_t site;
  assay_uop uop;

  RunnableStep(const SkeletonStep &step, uint32_t site);

  bool is_access() const { return op == Op::access || op == Op::access_at; }
  bool is_computation() const { return op >= Op::compute && op < Op::access; }
  // Of an access.
  uint64_t address(const SkeletonVariables &v) const {
    return binary::has_immediate(uop) ? v[uop.a] + static_cast<uint64_t>(uop.imm) : sum(v);
  }
  // Of Op::access and Op::lea.
  uint64_t sum(const SkeletonVariables &v) const {
    return v[uop.a] + (v[uop.b] << uop.shift) + v[uop.c] + static_cast<uint64_t>(int64_t{uop.i});
  }
  // Of a computation.
  void compute(SkeletonVariables &v) const;
};

} // namespace trace
