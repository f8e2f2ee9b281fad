// How often loops go round, and where they are left.
#pragma once

#include "binary/forms.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace binary {

// A place where control goes from a loop to what is outside of it.
struct LoopExit {
  uint32_t node = 0;                  // of Ssa
  uint32_t instruction = 0;           // the last of the node's block
  bool if_taken = false;              // a branch: the loop is left if it is taken, or else if not
  bool by_exception = false;          // from a call, to a landing pad
  std::optional<Condition> condition; // under which it is left, if that is known
};

struct TripCount {
  std::vector<LoopExit> exits; // by node in reverse postorder
  // How often the header is reached each time that the loop is entered, unless an exception or an end of the
  // program comes before; known() only if that is proven. Only the low `bits` bits count, and 0
  // stands for 2^bits.
  ExprId times;
  unsigned bits = 64;
};

// Of a loop with one way out but for exceptions, whose condition is a comparison of values that go up evenly.
TripCount trip_count(const FlowGraph &graph, const Ssa &ssa, Forms &forms, uint32_t loop);

} // namespace binary
