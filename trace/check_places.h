// Before which blocks moved code makes sure that there is room in its buffers.
#pragma once

#include "binary/flow_graph.h"

#include <cstdint>
#include <vector>

namespace trace {

struct LoggedBlocks {            // by block
  std::vector<uint32_t> bytes;   // that it logs, at most
  std::vector<bool> only_behind; // a loop of one block that logs nothing until it is left
};

// By block. On each way round on which something is logged there is a check, and from one check to
// the next no more is logged than there is room for.
std::vector<bool> check_places(const binary::FlowGraph &graph, const LoggedBlocks &logged);

} // namespace trace
