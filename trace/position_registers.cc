// A position that is loaded and stored in each block is a chain through memory, five cycles a link,
// which the program waits for. Within a loop that has a register to spare it is one addition.
//
// Loops are taken for what lies between a jump back and its target, which is what compilers make of
// them. The largest such stretch that has a register to spare decides for all blocks in it.

#include "trace/position_registers.h"

#include "base/stable_sort.h"
#include "binary/effects.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

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

// How many of the block's instructions leave each register alone, of those that hold nothing where
// it begins; 0 for all others.
std::array<uint32_t, 16> left_alone(const binary::FlowGraph &graph, uint32_t block,
                                    RegisterSet busy) {
  std::array<uint32_t, 16> lengths = {};
  auto left = static_cast<RegisterSet>(~busy & ~kFrameRegisters);
  for (const binary::Instruction &each : graph.instructions_of(graph.blocks[block])) {
    const binary::Effects effects = binary::effects_of(graph.code, each);
    left = static_cast<RegisterSet>(left & ~(effects.reads | effects.writes));
    for (RegisterSet of = left; of; of = static_cast<RegisterSet>(of & (of - 1)))
      lengths[static_cast<size_t>(std::countr_zero(of))]++;
  }
  return lengths;
}

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

void add_registers_at_entries(const binary::FlowGraph &graph, const binary::Liveness &liveness,
                              const std::vector<RegisterSet> &logged,
                              const std::vector<HolderWish> &wanted,
                              std::optional<uint8_t> preferred,
                              std::vector<std::optional<uint8_t>> &registers) {
  // Where several do, the one that does in most blocks, so that it need not be copied from one to the next.
  std::array<uint32_t, 16> blocks = {};
  std::vector<std::array<uint32_t, 16>> lengths(graph.blocks.size());
  for (uint32_t b = 0; b < graph.blocks.size(); b++) {
    if (graph.blocks[b].is_dispatch())
      continue;
    lengths[b] = left_alone(graph, b, static_cast<RegisterSet>(liveness.at(b) | logged[b]));
    for (size_t reg = 0; reg < blocks.size(); reg++)
      blocks[reg] += lengths[b][reg] == graph.blocks[b].count;
  }
  for (uint32_t b = 0; b < graph.blocks.size(); b++) {
    if (wanted[b] == HolderWish::none || registers[b])
      continue;
    auto merit = [&](uint8_t reg) {
      return std::tuple(lengths[b][reg], preferred == reg, blocks[reg]);
    };
    uint8_t best = 0;
    for (uint8_t reg = 1; reg < blocks.size(); reg++)
      if (merit(reg) > merit(best))
        best = reg;
    const uint32_t least = wanted[b] == HolderWish::to_pass_on ? graph.blocks[b].count : 1;
    if (lengths[b][best] >= least)
      registers[b] = best;
  }
}

} // namespace trace
