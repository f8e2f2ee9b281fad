#include "trace/block_order.h"

#include <algorithm>

namespace trace {

BlockOrder::BlockOrder(const binary::FlowGraph &graph)
    : graph_(graph), place_(graph.blocks.size(), 0), is_back_target_(graph.blocks.size(), false) {
  for (uint32_t b = 0; b < graph.blocks.size(); b++)
    if (!graph.blocks[b].is_dispatch()) {
      blocks_.push_back(b);
      block_at_[address_of(b)] = b;
    }
  std::sort(blocks_.begin(), blocks_.end(),
            [&](uint32_t a, uint32_t b) { return address_of(a) < address_of(b); });
  for (size_t i = 0; i < blocks_.size(); i++)
    place_[blocks_[i]] = i;
  for (uint32_t b : blocks_)
    for (uint32_t from : graph.blocks[b].predecessors)
      if (!graph.blocks[from].is_dispatch() && !is_later(b, from))
        is_back_target_[b] = true;
}

} // namespace trace
