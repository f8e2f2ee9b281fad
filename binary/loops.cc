// Natural loops, outermost first: a loop is what reaches its back edges without passing its head.
//
// Irreducible regions are strongly connected components with more than one entry. The head is the
// entry with the most edges from within; all other nodes of the component are copied, and edges that
// come from outside to them go to the copies. In the component itself the head is the only entry then,
// and the copies, which no longer contain it, are smaller: the same is done inside both until nothing
// is left. Source: Janssen, Corporaal: Making Graphs Reducible with Controlled Node Splitting, for
// how few copies a good choice of the head needs.

#include "binary/loops.h"

#include <algorithm>
#include <functional>

namespace binary {
namespace {

// Strongly connected components of the nodes that `in` marks, without edges to `without`. Tarjan's
// algorithm, without recursion.
std::vector<std::vector<uint32_t>> components(const Edges &successors,
                                              const std::vector<uint32_t> &nodes,
                                              const std::vector<uint32_t> &level_of, uint32_t level) {
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

class Reducer {
public:
  Reducer(Edges &successors, uint32_t root, std::vector<uint32_t> &original, size_t most)
      : successors_(successors), root_(root), original_(original), most_(most),
        level_of_(successors.size(), 0) {}

  bool run() {
    std::vector<uint32_t> all;
    for (uint32_t node : dominators(successors_, root_).order)
      all.push_back(node);
    // Unreachable nodes are at no level.
    std::fill(level_of_.begin(), level_of_.end(), kNowhere);
    for (uint32_t node : all)
      level_of_[node] = 1;
    next_level_ = 2;
    std::vector<Region> work{{std::move(all), 1}};
    while (!work.empty()) {
      Region region = std::move(work.back());
      work.pop_back();
      if (!reduce(std::move(region), work))
        return false;
    }
    return true;
  }

private:
  static constexpr uint32_t kNowhere = 0;
  struct Region {
    std::vector<uint32_t> nodes;
    uint32_t level;
  };

  // Gives each component of the region one entry, and leaves what is inside of it for later.
  bool reduce(Region region, std::vector<Region> &work) {
    for (;;) {
      bool copied = false;
      auto found = components(successors_, region.nodes, level_of_, region.level);
      for (auto &component : found) {
        if (component.size() == 1)
          continue;
        auto heads = entries_of(component);
        if (heads.size() > 1) {
          if (!copy_all_but(best_head(component, heads), component, region))
            return false;
          copied = true;
          break; // the region has changed
        }
      }
      if (copied)
        continue;
      for (auto &component : found) {
        if (component.size() == 1)
          continue;
        uint32_t head = entries_of(component).front();
        Region inner{{}, next_level_++};
        for (uint32_t node : component)
          if (node != head) {
            inner.nodes.push_back(node);
            level_of_[node] = inner.level;
          }
        work.push_back(std::move(inner));
      }
      return true;
    }
  }

  std::vector<uint32_t> entries_of(const std::vector<uint32_t> &component) {
    mark(component);
    std::vector<uint32_t> entries;
    for (uint32_t node = 0; node < successors_.size(); node++) {
      if (marked_[node] || level_of_[node] == kNowhere)
        continue;
      for (uint32_t to : successors_[node])
        if (marked_[to] && std::find(entries.begin(), entries.end(), to) == entries.end())
          entries.push_back(to);
    }
    if (marked_[root_] && std::find(entries.begin(), entries.end(), root_) == entries.end())
      entries.push_back(root_);
    return entries;
  }

  uint32_t best_head(const std::vector<uint32_t> &component, const std::vector<uint32_t> &heads) {
    mark(component);
    uint32_t best = heads.front();
    size_t most = 0;
    for (uint32_t head : heads) {
      size_t edges = head == root_ ? successors_.size() : 0;
      for (uint32_t node : component)
        edges += static_cast<size_t>(
            std::count(successors_[node].begin(), successors_[node].end(), head));
      if (edges > most) {
        most = edges;
        best = head;
      }
    }
    return best;
  }

  bool copy_all_but(uint32_t head, const std::vector<uint32_t> &component, Region &region) {
    if (successors_.size() + component.size() > most_)
      return false;
    mark(component);
    marked_[head] = false;
    std::vector<uint32_t> copy_of(successors_.size(), UINT32_MAX);
    auto before = static_cast<uint32_t>(successors_.size());
    for (uint32_t node : component)
      if (node != head) {
        copy_of[node] = static_cast<uint32_t>(successors_.size());
        successors_.push_back(successors_[node]);
        uint32_t what = original_[node];
        original_.push_back(what);
        level_of_.push_back(region.level);
        region.nodes.push_back(copy_of[node]);
      }
    for (uint32_t node = 0; node < successors_.size(); node++) {
      bool is_copy = node >= before, inside = !is_copy && (marked_[node] || node == head);
      if (inside || level_of_[node] == kNowhere)
        continue;
      for (uint32_t &to : successors_[node])
        if (to < before && marked_[to])
          to = copy_of[to];
    }
    return true;
  }

  void mark(const std::vector<uint32_t> &nodes) {
    marked_.assign(successors_.size(), false);
    for (uint32_t node : nodes)
      marked_[node] = true;
  }

  Edges &successors_;
  uint32_t root_;
  std::vector<uint32_t> &original_;
  size_t most_;
  std::vector<uint32_t> level_of_; // the innermost region that a node is in, without its head
  std::vector<bool> marked_;
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

bool make_reducible(Edges &successors, uint32_t root, std::vector<uint32_t> &original, size_t most) {
  return is_reducible(successors, root) || Reducer(successors, root, original, most).run();
}

Loops find_loops(const Edges &successors, const Dominators &dominators) {
  Loops loops;
  loops.innermost.assign(successors.size(), Loop::kNone);
  Edges predecessors(successors.size());
  for (uint32_t node : dominators.order)
    for (uint32_t to : successors[node])
      predecessors[to].push_back(node);
  // Heads in reverse postorder: an outer loop before those inside.
  for (uint32_t head : dominators.order) {
    Loop loop;
    loop.head = head;
    for (uint32_t from : predecessors[head])
      if (dominators.dominates(head, from))
        loop.back.push_back(from);
    if (loop.back.empty())
      continue;
    auto index = static_cast<uint32_t>(loops.all.size());
    loop.parent = loops.innermost[head];
    loop.depth = loop.parent == Loop::kNone ? 1 : loops.all[loop.parent].depth + 1;
    std::vector<uint32_t> work = loop.back;
    loops.innermost[head] = index;
    while (!work.empty()) {
      uint32_t node = work.back();
      work.pop_back();
      if (loops.innermost[node] == index)
        continue;
      loops.innermost[node] = index;
      for (uint32_t from : predecessors[node])
        work.push_back(from);
    }
    loops.all.push_back(std::move(loop));
  }
  return loops;
}

} // namespace binary
