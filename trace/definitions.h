// Each definition of a register in a routine, and what accesses and branches ask of them.
#pragma once

#include "trace/plan_shape.h"

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace trace {

using NodeId = uint32_t;
inline constexpr NodeId kFree = 0;    // constants, the bias, the base of fs
inline constexpr NodeId kUnknown = 1; // what skeletons have no notion of: vectors, masks
inline constexpr NodeId kNoNode = UINT32_MAX;
inline constexpr size_t kMaxNodes = 400'000;

// What memory gives, what a start finds in a register, what a micro-op makes, or a join of a register at a block.
struct Node {
  std::vector<NodeId> inputs;
  bool is_given = false;    // it cannot be computed
  uint8_t bytes = 8;        // that it has, zero-extended
  uint8_t reg = UINT8_MAX;  // the general register that holds it behind its instruction
  uint8_t logged_bytes = 0; // of that register; 0: it cannot be logged
  double times = 0;         // how often it is made
};

// What an access or a branch asks.
struct Use {
  std::array<NodeId, 3> nodes = {kFree, kFree, kFree};
  bool is_branch = false;
  uint32_t block = 0;
};

struct Definitions {
  using Registers = std::array<NodeId, ASSAY_REG_FLAGS + 1>;
  bool is_complete =
      true; // false: something is asked that no node stands for, or there are more than kMaxNodes
  std::vector<Node> nodes;
  std::vector<Use> uses;
  std::vector<Registers> begin;                        // by block
  std::vector<std::array<NodeId, kPlanVariables>> end; // by block
  std::unordered_map<uint32_t, Registers> within;      // by instruction before which a start stands
  std::unordered_map<uint32_t, Registers> repeated;    // by string instruction: what it leaves
  std::map<std::pair<uint32_t, unsigned>, NodeId> opaque; // by opaque instruction and register
  std::vector<NodeId> result_of;                          // by micro-op
  std::unordered_map<uint32_t, size_t> branch_use;        // by block
};

Definitions define(const binary::FlowGraph &graph, const PlanShape &shape);

} // namespace trace
