// Loops of one block in which addresses go up evenly, and a counter or a comparison says when they
// end: many iterations are told at once.
#pragma once

#include "profile/access_stream.h"
#include "trace/runnable_step.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace trace {

class SteadyLoop {
public:
  // What decides after each iteration.
  struct End {
    bool is_count = false;  // another iteration follows unless the variable is what kLoopEnd is
    bool while_set = false; // else: if it is not 0; or, without this, if it is 0
    uint16_t variable = 0;
  };
  // Nullopt if the block is no such loop.
  static std::optional<SteadyLoop> of(std::span<const RunnableStep> steps, const End &end);

  // A variable of so many bytes is so much more after each iteration.
  struct Step {
    uint16_t variable;
    uint8_t bytes;
    uint64_t by;
    void go(uint64_t iterations, SkeletonVariables &v) const;
  };
  // What is certain from an iteration on that begins with some variables.
  struct Iterations {
    uint64_t count = 0; // that another one follows; there may be more
    std::vector<profile::AccessRun> body;
    std::vector<Step> steps;
  };
  Iterations iterations(const SkeletonVariables &from) const;

private:
  // What the flags are made of that the end asks for.
  struct Operands {
    uint64_t a, b;
  };
  Operands run_iteration(SkeletonVariables &v, std::vector<profile::Access> &accesses) const;
  bool goes_on(const Operands &operands) const;
  uint64_t iterations_until_equal(const Operands &first, const Operands &step) const;
  uint64_t iterations_in_order(const Operands &first, const Operands &step) const;

  std::vector<RunnableStep> steps_;
  End end_;
  std::vector<std::pair<uint16_t, uint8_t>>
      carried_;            // variables that an iteration takes from the one before, and their bytes
  uint32_t compares_ = 0;  // the step that makes the flags
  unsigned condition_ = 0; // ASSAY_UOP_if_* of them
};

} // namespace trace
