// A minimum cut between what cannot be computed and what accesses and branches ask. A node's price
// is how often it is made, times what logging it costs; a branch that does not follow from the
// flags has its own.

#include "trace/logged_nodes.h"

#include "binary/effects.h"
#include "trace/min_cut.h"

namespace trace {
namespace {

uint64_t price(double times, unsigned bytes) {
  constexpr double kScale = 1 << 10, kWork = 4; // a store costs as much as so many bytes
  return static_cast<uint64_t>(times * kScale * (bytes + kWork)) + 1;
}

class Chooser {
public:
  Chooser(const binary::FlowGraph &graph, const PlanShape &shape, const Definitions &definitions)
      : graph_(graph), shape_(shape), definitions_(definitions) {}

  std::optional<LoggedNodes> choose() {
    if (!cut())
      return std::nullopt;
    find_counted();
    find_needed();
    return std::move(logged_);
  }

private:
  bool cut() {
    const std::vector<Node> &nodes = definitions_.nodes;
    const std::vector<Use> &uses = definitions_.uses;
    MinCut network;
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> number(nodes.size(), kNone), branch_number(uses.size(), kNone);
    std::vector<NodeId> work;
    auto node = [&](NodeId id) {
      const Node &of = nodes[id];
      if (number[id] == kNone) {
        number[id] =
            network.node(of.logged_bytes ? price(of.times, of.logged_bytes) : MinCut::kNever);
        work.push_back(id);
      }
      return number[id];
    };
    for (size_t u = 0; u < uses.size(); u++) {
      const Use &use = uses[u];
      if (use.is_branch)
        network.sink(branch_number[u] = network.node(branch_price(use)));
      for (NodeId each : use.nodes) {
        if (each == kFree)
          continue;
        const uint32_t from = node(each);
        if (use.is_branch)
          network.edge(from, branch_number[u]);
        else
          network.sink(from);
      }
    }
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (nodes[id].is_given)
        network.source(number[id]);
      for (NodeId input : nodes[id].inputs)
        if (input != kFree)
          network.edge(node(input), number[id]);
    }
    if (!network.solve())
      return false;
    for (uint32_t each : number)
      logged_.nodes.push_back(each != kNone && network.is_cut(each));
    for (uint32_t each : branch_number)
      logged_.branches.push_back(each != kNone && network.is_cut(each));
    return true;
  }

  uint64_t branch_price(const Use &use) const {
    const double times = shape_.times[use.block];
    if (!is_decided_by_flags(use))
      return MinCut::kNever;
    return shape_.is_counted(use.block) ? price(times / 8, 8) : price(times, 1);
  }

  // Whether the branch is one of 16 conditions, which setcc yields as well.
  bool is_decided_by_flags(const Use &use) const {
    const binary::Instruction &last = graph_.last_of(graph_.blocks[use.block]);
    for (const assay_uop &uop : graph_.code.uops_of(last))
      if (binary::has_result(uop) && !assay_uop_is_condition(uop.op))
        return false;
    return true;
  }

  void find_counted() {
    logged_.ends_by_count.assign(graph_.blocks.size(), false);
    for (const auto &[block, use] : definitions_.branch_use)
      logged_.ends_by_count[block] = shape_.is_counted(block) && logged_.branches[use];
  }

  void find_needed() {
    logged_.needed.assign(definitions_.nodes.size(), false);
    std::vector<NodeId> work;
    auto need = [&](NodeId id) {
      if (id != kFree && !logged_.needed[id]) {
        logged_.needed[id] = true;
        work.push_back(id);
      }
    };
    for (size_t u = 0; u < definitions_.uses.size(); u++)
      if (!logged_.branches[u])
        for (NodeId each : definitions_.uses[u].nodes)
          need(each);
    for (uint32_t b = 0; b < graph_.blocks.size(); b++)
      if (logged_.ends_by_count[b])
        need(definitions_.end[b][shape_.counter_of[b]]);
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (!logged_.nodes[id])
        for (NodeId input : definitions_.nodes[id].inputs)
          need(input);
    }
  }

  const binary::FlowGraph &graph_;
  const PlanShape &shape_;
  const Definitions &definitions_;
  LoggedNodes logged_;
};

} // namespace

std::optional<LoggedNodes> choose_logged(const binary::FlowGraph &graph, const PlanShape &shape,
                                         const Definitions &definitions) {
  return Chooser(graph, shape, definitions).choose();
}

} // namespace trace
