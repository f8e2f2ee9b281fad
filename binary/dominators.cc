// Iterated to a fixed point in reverse postorder. Lengauer and Tarjan's algorithm is faster on graphs
// of many thousands of nodes; routines have dozens, and this one is a page.

#include "binary/dominators.h"

#include <algorithm>
#include <utility>

namespace binary {
namespace {

// Nodes in reverse postorder; without recursion, because graphs may be deep.
std::vector<uint32_t> reverse_postorder(const Edges &successors, uint32_t root) {
  std::vector<uint32_t> order;
  std::vector<bool> seen(successors.size(), false);
  std::vector<std::pair<uint32_t, size_t>> stack{{root, 0}};
  seen[root] = true;
  while (!stack.empty()) {
    auto &[node, next] = stack.back();
    if (next == successors[node].size()) {
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    uint32_t successor = successors[node][next++];
    if (!seen[successor]) {
      seen[successor] = true;
      stack.push_back({successor, 0});
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

void number_tree(Dominators &result, uint32_t root) {
  size_t nodes = result.immediate.size();
  result.children.assign(nodes, {});
  for (uint32_t node : result.order)
    if (node != root)
      result.children[result.immediate[node]].push_back(node);
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

Dominators dominators(const Edges &successors, uint32_t root) {
  constexpr uint32_t kNone = Dominators::kNone;
  Dominators result;
  result.order = reverse_postorder(successors, root);
  result.number.assign(successors.size(), kNone);
  for (uint32_t i = 0; i < result.order.size(); i++)
    result.number[result.order[i]] = i;
  Edges predecessors(successors.size());
  for (uint32_t node : result.order)
    for (uint32_t successor : successors[node])
      predecessors[successor].push_back(node);

  auto &immediate = result.immediate;
  immediate.assign(successors.size(), kNone);
  immediate[root] = root;
  auto common = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (result.number[a] > result.number[b])
        a = immediate[a];
      while (result.number[b] > result.number[a])
        b = immediate[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t node : result.order) {
      if (node == root)
        continue;
      uint32_t found = kNone;
      for (uint32_t predecessor : predecessors[node])
        if (immediate[predecessor] != kNone)
          found = found == kNone ? predecessor : common(found, predecessor);
      if (immediate[node] != found) {
        immediate[node] = found;
        changed = true;
      }
    }
  }

  result.frontier.assign(successors.size(), {});
  for (uint32_t node : result.order) {
    bool joins = predecessors[node].size() > 1 || (node == root && !predecessors[node].empty());
    if (!joins)
      continue;
    for (uint32_t from : predecessors[node])
      for (uint32_t runner = from;; runner = immediate[runner]) {
        if (node != root && runner == immediate[node])
          break;
        auto &frontier = result.frontier[runner];
        if (frontier.empty() || frontier.back() != node)
          frontier.push_back(node);
        if (runner == root)
          break;
      }
  }
  number_tree(result, root);
  return result;
}

} // namespace binary
