// A position that is loaded and stored in each block is a chain through memory, five cycles a link, which the program waits for. Within a
// loop that has a register to spare it is one addition.
//
// Loops are taken for what lies between a jump back and its target, which is what compilers make of them. The largest such stretch that has a register
// to spare decides for all blocks in it.

#include "trace/position_registers.h"

#include "base/stable_sort.h"
#include "binary/effects.h"

#include <algorithm>
#include <bit>

namespace trace {
namespace {

using binary::RegisterSet;

// Registers that the block reads or writes, or leaves as they are for what follows.
RegisterSet busy_in(const binary::FlowGraph &graph, const binary::Liveness &liveness,
                    uint32_t block) {
  uint64_t busy = kFrameRegisters;
  for (const auto live : liveness.along(block))
    busy |= live & 0xffff;
  for (const binary::Instruction &each : graph.instructions_of(graph.blocks[block])) {
    const binary::Effects effects = binary::effects_of(graph.code, each);
    busy |= (effects.reads | effects.writes) & 0xffff;
  }
  return static_cast<RegisterSet>(busy);
}

struct Stretch {
  size_t first, last; // places in the order
};

} // namespace

std::vector<std::optional<uint8_t>> position_registers(const binary::FlowGraph &graph,
                                                       const binary::Liveness &liveness,
                                                       const std::vector<uint32_t> &order,
                                                       const std::vector<RegisterSet> &logged) {
  std::vector<std::optional<uint8_t>> registers(graph.blocks.size());
  if (order.empty())
    return registers;
  std::vector<size_t> place(graph.blocks.size(), 0);
  std::vector<RegisterSet> busy(order.size());
  for (size_t i = 0; i < order.size(); i++) {
    place[order[i]] = i;
    busy[i] = static_cast<RegisterSet>(busy_in(graph, liveness, order[i]) | logged[order[i]]);
  }
  std::vector<Stretch> stretches = {{0, order.size() - 1}};
  for (size_t i = 0; i < order.size(); i++) {
    size_t last = i;
    bool is_loop = false;
    for (uint32_t from : graph.blocks[order[i]].predecessors)
      if (!graph.blocks[from].is_dispatch() && place[from] >= i) {
        is_loop = true;
        last = std::max(last, place[from]);
      }
    if (is_loop)
      stretches.push_back({i, last});
  }
  base::stable_sort(stretches, [](const Stretch &a, const Stretch &b) {
    return a.last - a.first > b.last - b.first;
  });
  constexpr size_t kWork = 1 << 22; // blocks that are looked at; loops may be nested deeply
  size_t looked_at = 0;
  for (const Stretch &stretch : stretches) {
    if ((looked_at += stretch.last - stretch.first + 1) > kWork)
      break;
    RegisterSet taken = 0;
    for (size_t i = stretch.first; i <= stretch.last; i++)
      taken = static_cast<RegisterSet>(taken | busy[i]);
    const auto free = static_cast<RegisterSet>(~taken);
    if (!free)
      continue;
    const auto chosen = static_cast<uint8_t>(std::countr_zero(free));
    for (size_t i = stretch.first; i <= stretch.last; i++)
      if (!registers[order[i]])
        registers[order[i]] = chosen;
  }
  return registers;
}

} // namespace trace
