// Which register holds a log's position from block to block: one that a whole loop, or the whole
// routine, has no use for.
#pragma once

#include "binary/liveness.h"
#include "trace/r11.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace trace {

// What unwinders compute the address of a frame from, even where the program has no more use for
// it. Snippets leave them alone.
inline constexpr binary::RegisterSet kFrameRegisters = static_cast<binary::RegisterSet>(
    binary::register_bit(ASSAY_REG_RSP) | binary::register_bit(ASSAY_REG_RBP));

// By block; nullopt where there is none. `order`: blocks as they are moved. `logged`: by block,
// registers whose contents are logged there.
std::vector<std::optional<uint8_t>>
position_registers(const binary::FlowGraph &graph, const binary::Liveness &liveness,
                   const std::vector<uint32_t> &order,
                   const std::vector<binary::RegisterSet> &logged);

// That in which the position is left where functions are called and return.
inline constexpr uint8_t kBetween = kR11;

enum class HolderWish : uint8_t { none, for_what_it_logs, to_pass_on };

// Adds one for each block that wants it and has none yet: a register that holds nothing where the
// block begins, and is left alone by it for long; by all of it, if the position is passed on.
// `preferred`, if it can be that.
void add_registers_at_entries(const binary::FlowGraph &graph, const binary::Liveness &liveness,
                              const std::vector<binary::RegisterSet> &logged,
                              const std::vector<HolderWish> &wanted,
                              std::optional<uint8_t> preferred,
                              std::vector<std::optional<uint8_t>> &registers);

} // namespace trace
