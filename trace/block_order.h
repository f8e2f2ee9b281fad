// The blocks of a routine in the order in which they are moved: that of their addresses, so that
// most of them still run on into the next one.
#pragma once

#include "binary/flow_graph.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace trace {

class BlockOrder {
public:
  // The graph must outlive it.
  explicit BlockOrder(const binary::FlowGraph &graph);

  // Numbers of the graph's blocks, without those that stand for a dispatch: they have no code.
  const std::vector<uint32_t> &blocks() const { return blocks_; }
  // What follows hold for blocks of these. The linked address of a block's first instruction.
  uint64_t address_of(uint32_t block) const {
    return graph_.instructions_of(graph_.blocks[block]).front().address;
  }
  bool is_later(uint32_t block, uint32_t than) const { return place_[block] > place_[than]; }
  // The one behind it.
  std::optional<uint32_t> next(uint32_t block) const {
    const size_t place = place_[block] + 1;
    return place < blocks_.size() ? std::optional(blocks_[place]) : std::nullopt;
  }
  // Whether control comes there from the block itself or a later one.
  bool is_back_target(uint32_t block) const { return is_back_target_[block]; }

  // The block that begins at a linked address.
  std::optional<uint32_t> block_at(uint64_t address) const {
    const auto at = block_at_.find(address);
    return at == block_at_.end() ? std::nullopt : std::optional(at->second);
  }

private:
  const binary::FlowGraph &graph_;
  std::vector<uint32_t> blocks_;
  std::unordered_map<uint64_t, uint32_t> block_at_; // by address
  std::vector<size_t> place_;                       // by block: in the order
  std::vector<bool> is_back_target_;                // by block
};

} // namespace trace
