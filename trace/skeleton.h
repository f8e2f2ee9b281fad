// What is left of a function when only that is kept from which its accesses follow: the micro-ops
// that compute addresses, the branches, and the accesses themselves. It takes logged values where
// the function logs them, and yields the accesses in the order in which the function made them.
//
// A skeleton runs from one of its starts (the function's entries, and behind each call) to the next
// call or start. At a start all that it needs of registers is logged; so nothing is carried from
// one run to the next, and whatever control does meanwhile (exceptions, longjmp, other stacks, a
// child that goes on where its parent was) needs no care.
//
// Variables are the registers of micro-ops, by enum assay_uop_register: general registers, flags,
// temporaries of an instruction, the bias of the file, the base of fs.
#pragma once

#include "abi/uop.h"

#include <cstdint>
#include <vector>

namespace trace {

// A variable of skeletons that is no register: what the counter of a loop of one block is behind it.
inline constexpr unsigned kLoopEnd = ASSAY_REG_MASKS;
inline constexpr unsigned kSkeletonVariables = ASSAY_REG_LANES;

struct SkeletonStep {
  enum class Kind : uint8_t {
    in,      // variable uop.dst is the next `size` bytes of the stream, zero-extended
    compute, // uop
    access,  // of `size` bytes at a + (b << shift) + c + i of uop
    // The accesses of a repeated string instruction in turn, rcx times: this one and those of the
    // same instruction that follow it. Each is `size` further each time.
    repeat,
    // The same, made rcx less `rcx behind it` times; the latter are the next 8 bytes of the stream,
    // taken once by the first one.
    compare,
  };
  Kind kind = Kind::compute;
  bool write = false;
  uint16_t size = 0;
  uint64_t pc = 0; // linked
  assay_uop uop = {};
};

struct SkeletonBlock {
  enum class End : uint8_t {
    stop,   // a call, a return, a start, or elsewhere
    go,     // to next[0]
    branch, // to next[0] if variable `condition` is not 0, else next[1]
    logged, // the same, if the next byte of the stream is not 0
    count,  // to next[0] until variable `condition` is what kLoopEnd is, then to next[1]
    choose, // to next[the next 2 bytes of the stream]
  };
  static constexpr uint32_t kOut = UINT32_MAX; // as a successor: elsewhere
  uint64_t address = 0;
  std::vector<SkeletonStep> steps;
  End end = End::stop;
  uint16_t condition = 0;
  std::vector<uint32_t> next;
};

struct Skeleton {
  uint64_t address = 0; // of the function
  std::vector<SkeletonBlock> blocks;
};

} // namespace trace
