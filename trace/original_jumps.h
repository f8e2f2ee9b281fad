// The jumps that lead from the original of a routine to where it has been moved.
#pragma once

#include "abi/moved_code.h"
#include "binary/flow_graph.h"
#include "trace/instructions.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace trace {

struct OriginalJumps {
  // Linked addresses in ascending order, at which somebody may enter the original: each begins a block.
  std::vector<uint64_t> sites;
  // `to` of those of 5 bytes is the number of a site.
  std::vector<AssayMovedJump> jumps;
};

// At its entries, and at all that its jump tables and labels in data lead to. Nullopt where there is no room for
// one of them, or no block begins there.
std::optional<OriginalJumps> original_jumps(const image::Executable &executable,
                                            const InstructionDecoder &decoder,
                                            const binary::Routine &routine,
                                            const binary::FlowGraph &graph);

} // namespace trace
