// Where the values in registers come from, at the places where a routine is left: what a caller gets
// back, and whether an indirect jump can be a tail call.
#pragma once

#include "binary/flow_graph.h"

#include <array>
#include <cstdint>
#include <vector>

namespace binary {

struct Origin {
  enum Kind : uint8_t {
    computed, // by anything that is not below
    pointer,  // a whole word as it was read from memory, passed, returned, or made as an address
    entry,    // what `reg` held where the routine was entered, plus `offset`
    frame,    // an address of the stack: where it was aligned or grown at `place`, plus `offset`
  } kind = computed;
  uint8_t reg = 0;
  RegisterSet trust = 0; // calls on the way must have kept these for it to be true
  uint32_t place = 0;    // a micro-op
  int64_t offset = 0;

  bool same(const Origin &other) const {
    return kind == other.kind && reg == other.reg && place == other.place && offset == other.offset;
  }
  bool is_entry(unsigned which, int64_t at = 0) const {
    return kind == entry && reg == which && offset == at;
  }
  // May be the address of a function, and no address of this routine's own computing.
  bool is_plain() const { return kind == pointer || (kind == entry && offset == 0); }
};

// A place where control leaves a routine for good.
struct Exit {
  uint32_t block = 0;
  Flow flow = Flow::ret; // ret; jump: direct, or by running on; indirect_jump
  uint64_t target = 0;   // of a direct jump
  Origin jumps_to;       // of an indirect one
  // A caller of this place's routine finds the stack pointer where it was, …
  bool stack_is_back = false, stack_is_unknown = false;
  // … and these registers as they were, if calls have kept those in `trust`.
  RegisterSet back = 0;
  std::array<RegisterSet, 16> trust{};
  // These are on the stack as they were, and hold something else.
  RegisterSet saved = 0;
};

// The places at which control may leave, in the order of blocks. Indirect jumps with successors are
// among them: whether they may leave besides is for the caller to say.
std::vector<Exit> exits_of(const FlowGraph &graph);

} // namespace binary
