// Tables of `switch` statements and labels in data stay as they are and go on naming the original,
// so what they lead to is overwritten, as the entries are. Where the jumps fit is found by DeadBytes.

#include "trace/original_jumps.h"

#include "trace/dead_bytes.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace trace {

std::optional<OriginalJumps> original_jumps(const image::Executable &executable,
                                            const InstructionDecoder &decoder,
                                            const binary::Routine &routine,
                                            const binary::FlowGraph &graph) {
  OriginalJumps made;
  std::vector<uint64_t> &sites = made.sites;
  std::unordered_set<uint64_t> begins; // of blocks
  for (uint64_t entry : routine.entries)
    sites.push_back(entry);
  for (const binary::JumpTable &table : graph.tables)
    sites.insert(sites.end(), table.targets.begin(), table.targets.end());
  for (const binary::Block &block : graph.blocks) {
    if (!block.is_dispatch()) {
      begins.insert(graph.instructions_of(block).front().address);
      continue;
    }
    for (uint32_t label : block.successors)
      sites.push_back(graph.instructions_of(graph.blocks[label]).front().address);
  }
  std::sort(sites.begin(), sites.end());
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  std::vector<std::pair<uint64_t, uint32_t>> numbered;
  for (uint32_t i = 0; i < sites.size(); i++) {
    if (!begins.contains(sites[i]))
      return std::nullopt;
    numbered.emplace_back(sites[i], i);
  }
  if (!DeadBytes(executable, decoder, routine, graph).place(numbered, made.jumps))
    return std::nullopt;
  return made;
}

} // namespace trace
