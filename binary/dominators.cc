// Semidominators by union-find, then the nearest common ancestor in the tree made so far: n log n, and
// short. Iterating to a fixed point in reverse postorder was refused: it is quadratic on the graphs of
// generated code and of interpreters. So were dominance frontiers, which are quadratic in deep nests
// of loops; joins are placed without them.

#include "binary/dominators.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace binary {
namespace {

// A depth-first walk, without recursion, because graphs may be deep.
struct Walk {
  std::vector<uint32_t> preorder, postorder;
  std::vector<uint32_t> parent; // by node
};

Walk walk(const Edges &successors, uint32_t root) {
  Walk result;
  result.parent.assign(successors.size(), Dominators::kNone);
  std::vector<bool> seen(successors.size(), false);
  std::vector<std::pair<uint32_t, size_t>> stack{{root, 0}};
  seen[root] = true;
  result.preorder.push_back(root);
  while (!stack.empty()) {
    auto &[node, next] = stack.back();
    if (next == successors[node].size()) {
      result.postorder.push_back(node);
      stack.pop_back();
      continue;
    }
    uint32_t successor = successors[node][next++];
    if (!seen[successor]) {
      seen[successor] = true;
      result.parent[successor] = node;
      result.preorder.push_back(successor);
      stack.push_back({successor, 0});
    }
  }
  return result;
}

// Nodes are numbers in preorder. Answers which node of least semidominator lies on the way up to what
// has been linked.
class Forest {
public:
  explicit Forest(size_t nodes) : ancestor_(nodes, Dominators::kNone), label_(nodes), semi(nodes) {
    std::iota(label_.begin(), label_.end(), 0u);
    std::iota(semi.begin(), semi.end(), 0u);
  }
  void link(uint32_t parent, uint32_t node) { ancestor_[node] = parent; }
  uint32_t least(uint32_t node) {
    if (ancestor_[node] == Dominators::kNone)
      return node;
    path_.clear();
    for (uint32_t at = node; ancestor_[ancestor_[at]] != Dominators::kNone; at = ancestor_[at])
      path_.push_back(at);
    for (; !path_.empty(); path_.pop_back()) {
      uint32_t at = path_.back(), above = ancestor_[at];
      if (semi[label_[above]] < semi[label_[at]])
        label_[at] = label_[above];
      ancestor_[at] = ancestor_[above];
    }
    return label_[node];
  }

private:
  std::vector<uint32_t> ancestor_, label_, path_;

public:
  std::vector<uint32_t> semi;
};

void number_tree(Dominators &result, uint32_t root) {
  size_t nodes = result.immediate.size();
  result.children = AdjacencyLists(nodes, [&](auto add) {
    for (uint32_t node : result.order)
      if (node != root)
        add(result.immediate[node], node);
  });
  result.depth.assign(nodes, 0);
  for (uint32_t node : result.order)
    if (node != root)
      result.depth[node] = result.depth[result.immediate[node]] + 1;
  // Nodes that are not reachable are dominated by themselves alone.
  result.first_.resize(nodes);
  result.last_.resize(nodes);
  uint32_t time = 0;
  for (uint32_t node = 0; node < nodes; node++)
    if (result.number[node] == Dominators::kNone) {
      result.first_[node] = time++;
      result.last_[node] = time++;
    }
  std::vector<std::pair<uint32_t, size_t>> stack{{root, 0}};
  result.first_[root] = time++;
  while (!stack.empty()) {
    auto &[node, next] = stack.back();
    if (next == result.children[node].size()) {
      result.last_[node] = time++;
      stack.pop_back();
      continue;
    }
    uint32_t child = result.children[node][next++];
    result.first_[child] = time++;
    stack.push_back({child, 0});
  }
}

} // namespace

std::vector<uint32_t> reverse_postorder(const Edges &successors, uint32_t root) {
  const std::vector<uint32_t> order = walk(successors, root).postorder;
  return {order.rbegin(), order.rend()};
}

Dominators dominators(const Edges &successors, uint32_t root) {
  constexpr uint32_t kNone = Dominators::kNone;
  Dominators result;
  Walk walked = walk(successors, root);
  result.order.assign(walked.postorder.rbegin(), walked.postorder.rend());
  result.number.assign(successors.size(), kNone);
  for (uint32_t i = 0; i < result.order.size(); i++)
    result.number[result.order[i]] = i;

  // From here on nodes are numbers in preorder.
  auto count = static_cast<uint32_t>(walked.preorder.size());
  std::vector<uint32_t> place(successors.size(), kNone);
  for (uint32_t i = 0; i < count; i++)
    place[walked.preorder[i]] = i;
  const AdjacencyLists predecessors(count, [&](auto add) {
    for (uint32_t i = 0; i < count; i++)
      for (uint32_t to : successors[walked.preorder[i]])
        add(place[to], i);
  });
  std::vector<uint32_t> immediate(count, 0);
  Forest forest(count);
  for (uint32_t i = count; i-- > 1;) {
    for (uint32_t from : predecessors[i])
      forest.semi[i] = std::min(forest.semi[i], forest.semi[forest.least(from)]);
    immediate[i] = place[walked.parent[walked.preorder[i]]];
    forest.link(immediate[i], i);
  }
  for (uint32_t i = 1; i < count; i++)
    while (immediate[i] > forest.semi[i])
      immediate[i] = immediate[immediate[i]];

  result.immediate.assign(successors.size(), kNone);
  for (uint32_t i = 0; i < count; i++)
    result.immediate[walked.preorder[i]] = walked.preorder[immediate[i]];
  number_tree(result, root);
  return result;
}

// From the deepest definitions up: whoever is below a definition in the tree and has an edge to a node
// that is not deeper than the definition makes that a join, which defines the variable too. What was
// visited for a deeper definition need not be visited again.
std::vector<uint64_t> join_points(const Edges &successors, const Dominators &dominators,
                                  const std::vector<uint64_t> &defined) {
  std::vector<uint64_t> joins(successors.size(), 0), visited(successors.size(), 0),
      waiting(successors.size(), 0);
  std::vector<std::vector<uint32_t>> by_depth;
  auto wait = [&](uint32_t node, uint64_t variables) {
    if (!waiting[node]) {
      if (by_depth.size() <= dominators.depth[node])
        by_depth.resize(dominators.depth[node] + 1);
      by_depth[dominators.depth[node]].push_back(node);
    }
    waiting[node] |= variables;
  };
  for (uint32_t node : dominators.order)
    if (uint64_t variables = node == dominators.order.front() ? ~uint64_t{0} : defined[node])
      wait(node, variables);
  std::vector<std::pair<uint32_t, uint64_t>> work;
  for (size_t depth = by_depth.size(); depth-- > 0;)
    while (!by_depth[depth].empty()) {
      uint32_t top = by_depth[depth].back();
      by_depth[depth].pop_back();
      work.emplace_back(top, std::exchange(waiting[top], 0));
      while (!work.empty()) {
        auto [node, variables] = work.back();
        work.pop_back();
        variables &= ~visited[node];
        if (!variables)
          continue;
        visited[node] |= variables;
        for (uint32_t to : successors[node]) {
          if (dominators.depth[to] > depth || (dominators.immediate[to] == node && to != node))
            continue;
          uint64_t placed = variables & ~joins[to];
          joins[to] |= placed;
          if (placed & ~defined[to])
            wait(to, placed & ~defined[to]);
        }
        for (uint32_t child : dominators.children[node])
          work.emplace_back(child, variables);
      }
    }
  return joins;
}

} // namespace binary
