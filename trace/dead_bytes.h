// The bytes that a routine leaves behind when it is moved, which hold the jumps to where it is now.
#pragma once

#include "abi/moved_code.h"
#include "binary/flow_graph.h"
#include "trace/instructions.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace trace {

class DeadBytes {
public:
  // Those of the routine's instructions, and what pads behind it.
  DeadBytes(const image::Executable &executable, const InstructionDecoder &decoder,
            const binary::Routine &routine, const binary::FlowGraph &graph);

  // Puts jumps at all `sites`, addresses in order with what they lead to (AssayMovedJump::to);
  // false if there is no room. A site with less than 5 bytes gets a short jump to a long one
  // nearby.
  bool place(const std::vector<std::pair<uint64_t, uint32_t>> &sites,
             std::vector<AssayMovedJump> &jumps);

private:
  void add(uint64_t begin, uint64_t end);
  void add_padding(const image::Executable &executable, const InstructionDecoder &decoder,
                   uint64_t at);
  uint64_t end_of(uint64_t address) const;
  bool is_free(uint64_t begin, uint64_t end) const;
  std::optional<uint64_t> hole_near(uint64_t from) const;

  std::map<uint64_t, uint64_t> dead_, taken_; // end by begin
};

} // namespace trace
