// A loop is a strongly connected component: its head is where it is entered, and the loops inside are
// the components of what is left without the head.
//
// A component with more than one entry is irreducible. The head is the entry with the most edges from
// within; all other nodes are copied, and edges that come from outside to them go to the copies. In
// the component itself the head is the only entry then, and the copies, which no longer contain it,
// are smaller: the same is done inside both until nothing is left. Source: Janssen, Corporaal: Making
// Graphs Reducible with Controlled Node Splitting, for how few copies a good choice of the head needs.
// Dispatchers of interpreters, where everything jumps to everything, would need millions: there the
// loop stays irregular.

#include "binary/loops.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace binary {
namespace {

// Strongly connected components of the nodes that `in` marks, without edges to `without`. Tarjan's
// algorithm, without recursion.
std::vector<std::vector<uint32_t>> components(const Edges &successors,
                                              const std::vector<uint32_t> &nodes,
                                              const std::vector<uint32_t> &level_of,
                                              uint32_t level) {
  struct Frame {
    uint32_t node;
    size_t next;
  };
  std::vector<std::vector<uint32_t>> found;
  std::vector<uint32_t> index(successors.size(), 0), low(successors.size(), 0), stack;
  std::vector<bool> on_stack(successors.size(), false);
  uint32_t time = 0;
  for (uint32_t start : nodes) {
    if (index[start])
      continue;
    std::vector<Frame> frames{{start, 0}};
    index[start] = low[start] = ++time;
    stack.push_back(start);
    on_stack[start] = true;
    while (!frames.empty()) {
      Frame &frame = frames.back();
      if (frame.next < successors[frame.node].size()) {
        uint32_t to = successors[frame.node][frame.next++];
        if (level_of[to] != level)
          continue;
        if (!index[to]) {
          index[to] = low[to] = ++time;
          stack.push_back(to);
          on_stack[to] = true;
          frames.push_back({to, 0});
        } else if (on_stack[to]) {
          low[frame.node] = std::min(low[frame.node], index[to]);
        }
        continue;
      }
      uint32_t node = frame.node;
      frames.pop_back();
      if (!frames.empty())
        low[frames.back().node] = std::min(low[frames.back().node], low[node]);
      if (low[node] != index[node])
        continue;
      std::vector<uint32_t> component;
      uint32_t popped;
      do {
        popped = stack.back();
        stack.pop_back();
        on_stack[popped] = false;
        component.push_back(popped);
      } while (popped != node);
      found.push_back(std::move(component));
    }
  }
  return found;
}

struct Region {
  std::vector<uint32_t> nodes;
  uint32_t level;
  uint32_t loop; // that it is the inside of
};

// The regions of a graph: all of it, and the insides of loops.
class Regions {
public:
  Regions(Edges &successors, uint32_t root) : successors_(successors), root_(root) {
    level_of_.assign(successors.size(), kNowhere);
    Region all{dominators(successors, root).order, next_level_++, Loop::kNone};
    for (uint32_t node : all.nodes)
      level_of_[node] = all.level;
    work_.push_back(std::move(all));
  }

  bool take(Region &region) {
    if (work_.empty())
      return false;
    region = std::move(work_.back());
    work_.pop_back();
    return true;
  }
  // The loops that are directly in a region.
  std::vector<std::vector<uint32_t>> components_of(const Region &region) const {
    auto found = components(successors_, region.nodes, level_of_, region.level);
    std::erase_if(found, [&](const std::vector<uint32_t> &component) {
      const auto &to = successors_[component.front()];
      return component.size() == 1 &&
             std::find(to.begin(), to.end(), component.front()) == to.end();
    });
    return found;
  }
  void go_inside(const std::vector<uint32_t> &component, uint32_t head, uint32_t loop) {
    Region inner{{}, next_level_++, loop};
    for (uint32_t node : component)
      if (node != head) {
        inner.nodes.push_back(node);
        level_of_[node] = inner.level;
      }
    work_.push_back(std::move(inner));
  }
  void leave_out(const std::vector<uint32_t> &component) {
    for (uint32_t node : component)
      level_of_[node] = kNowhere;
  }

  std::vector<uint32_t> entries_of(const std::vector<uint32_t> &component) {
    mark(component);
    std::vector<uint32_t> entries;
    auto add = [&](uint32_t node) {
      if (std::find(entries.begin(), entries.end(), node) == entries.end())
        entries.push_back(node);
    };
    if (marked_[root_])
      add(root_);
    for (uint32_t node = 0; node < successors_.size(); node++)
      if (!marked_[node] && level_of_[node] != kNowhere)
        for (uint32_t to : successors_[node])
          if (marked_[to])
            add(to);
    return entries;
  }

  uint32_t best_head(const std::vector<uint32_t> &component, const std::vector<uint32_t> &entries) {
    uint32_t best = entries.front();
    ptrdiff_t most = -1;
    for (uint32_t entry : entries) {
      ptrdiff_t edges = entry == root_ ? PTRDIFF_MAX : 0;
      for (uint32_t node : component)
        if (entry != root_)
          edges += std::count(successors_[node].begin(), successors_[node].end(), entry);
      if (edges > most) {
        most = edges;
        best = entry;
      }
    }
    return best;
  }

  void copy_all_but(uint32_t head, const std::vector<uint32_t> &component, Region &region,
                    std::vector<uint32_t> &original) {
    mark(component);
    marked_[head] = false;
    auto before = static_cast<uint32_t>(successors_.size());
    std::vector<uint32_t> copy_of(before, 0);
    for (uint32_t node : component)
      if (node != head) {
        copy_of[node] = static_cast<uint32_t>(successors_.size());
        successors_.push_back(Edges::value_type(successors_[node]));
        original.push_back(uint32_t{original[node]});
        level_of_.push_back(region.level);
        region.nodes.push_back(copy_of[node]);
      }
    for (uint32_t node = 0; node < successors_.size(); node++) {
      bool inside = node < before && (marked_[node] || node == head);
      if (inside || level_of_[node] == kNowhere)
        continue;
      for (uint32_t &to : successors_[node])
        if (to < before && marked_[to])
          to = copy_of[to];
    }
  }

private:
  static constexpr uint32_t kNowhere = 0; // not reached, or not any more

  void mark(const std::vector<uint32_t> &nodes) {
    marked_.assign(successors_.size(), false);
    for (uint32_t node : nodes)
      marked_[node] = true;
  }

  Edges &successors_;
  uint32_t root_;
  std::vector<uint32_t> level_of_; // of the innermost region that a node is in
  std::vector<bool> marked_;
  std::vector<Region> work_;
  uint32_t next_level_ = 1;
};

bool is_reducible(const Edges &successors, uint32_t root) {
  Dominators found = dominators(successors, root);
  for (uint32_t node : found.order)
    for (uint32_t to : successors[node])
      if (found.number[to] <= found.number[node] && !found.dominates(to, node))
        return false;
  return true;
}

} // namespace

bool make_reducible(Edges &given, uint32_t root, std::vector<uint32_t> &original, size_t most) {
  if (is_reducible(given, root))
    return true;
  Edges successors = given;
  std::vector<uint32_t> copies = original;
  Regions regions(successors, root);
  for (Region region; regions.take(region);) {
    bool copied = true;
    while (copied) {
      copied = false;
      for (const auto &component : regions.components_of(region)) {
        auto entries = regions.entries_of(component);
        if (entries.size() < 2)
          continue;
        if (successors.size() + component.size() - 1 > most)
          return false;
        regions.copy_all_but(regions.best_head(component, entries), component, region, copies);
        copied = true; // the region has changed
        break;
      }
    }
    for (const auto &component : regions.components_of(region)) {
      auto entries = regions.entries_of(component);
      if (entries.empty()) // all that led here goes to a copy now
        regions.leave_out(component);
      else
        regions.go_inside(component, entries.front(), Loop::kNone);
    }
  }
  given = std::move(successors);
  original = std::move(copies);
  return true;
}

Loops find_loops(const Edges &given, const Dominators &dominators, uint32_t root) {
  Edges successors = given;
  Regions regions(successors, root);
  struct Found {
    Loop loop;
    uint32_t first; // of its nodes in reverse postorder
    std::vector<uint32_t> nodes;
  };
  std::vector<Found> found;
  for (Region region; regions.take(region);)
    for (auto &component : regions.components_of(region)) {
      auto entries = regions.entries_of(component);
      Found made;
      made.loop.head = regions.best_head(component, entries);
      made.loop.parent = region.loop;
      made.loop.depth = region.loop == Loop::kNone ? 1 : found[region.loop].loop.depth + 1;
      made.loop.irregular = entries.size() > 1;
      made.first = UINT32_MAX;
      for (uint32_t node : component) {
        made.first = std::min(made.first, dominators.number[node]);
        const auto &to = successors[node];
        if (std::find(to.begin(), to.end(), made.loop.head) != to.end())
          made.loop.back.push_back(node);
      }
      made.nodes = component;
      regions.go_inside(component, made.loop.head, static_cast<uint32_t>(found.size()));
      found.push_back(std::move(made));
    }
  // In the order in which control comes to them, a loop before those inside.
  std::vector<uint32_t> order(found.size()), place(found.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(found[a].first, found[a].loop.depth) <
           std::tie(found[b].first, found[b].loop.depth);
  });
  Loops loops;
  loops.innermost.assign(given.size(), Loop::kNone);
  for (uint32_t i = 0; i < order.size(); i++)
    place[order[i]] = i;
  for (uint32_t index : order) {
    for (uint32_t node : found[index].nodes) // those inside come later
      loops.innermost[node] = static_cast<uint32_t>(loops.all.size());
    Loop &loop = found[index].loop;
    if (loop.parent != Loop::kNone)
      loop.parent = place[loop.parent];
    loops.all.push_back(std::move(loop));
  }
  return loops;
}

} // namespace binary
