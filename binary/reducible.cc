// A component with more than one entry is irreducible. The header is the entry with the most edges from
// within; all other nodes are copied, and edges that come from outside to them go to the copies. In
// the component itself the header is the only entry then, and the copies, which no longer contain it,
// are smaller: the same is done inside both until nothing is left. Source: Janssen, Corporaal: Making
// Graphs Reducible with Controlled Node Splitting, for how few copies a good choice of the header needs.
//
// Dispatchers of interpreters, where everything jumps to everything, would need millions of copies, and
// a nest of thousands of such loops more time than all else: there the loops stay irreducible.

#include "binary/loops.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace binary {
namespace {

// Strongly connected components of the nodes of a level, without edges to others. Tarjan's algorithm,
// without recursion; what it notes of nodes is kept by node, so that a small level costs little.
class Components {
public:
  std::vector<std::vector<uint32_t>> find(const Edges &successors,
                                          const std::vector<uint32_t> &nodes,
                                          const std::vector<uint32_t> &level_of, uint32_t level,
                                          uint64_t &work) {
    struct Frame {
      uint32_t node;
      size_t next;
    };
    std::vector<std::vector<uint32_t>> found;
    std::vector<uint32_t> stack;
    index.resize(successors.size());
    low.resize(successors.size());
    on_stack.resize(successors.size());
    for (uint32_t node : nodes) {
      index[node] = 0;
      work += 1 + successors[node].size();
    }
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

private:
  std::vector<uint32_t> index, low;
  std::vector<bool> on_stack;
};

struct Region {
  std::vector<uint32_t> nodes;
  uint32_t level;
};

// The regions of a graph: all of it, and the insides of loops.
class Regions {
public:
  Regions(Edges &successors, uint32_t root) : successors_(successors), root_(root) {
    level_of_.assign(successors.size(), kNowhere);
    predecessors_.resize(successors.size());
    Region all{dominators(successors, root).order, next_level_++};
    for (uint32_t node : all.nodes) {
      level_of_[node] = all.level;
      for (uint32_t to : successors[node])
        predecessors_[to].push_back(node);
    }
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
  std::vector<std::vector<uint32_t>> components_of(const Region &region) {
    auto found = components_.find(successors_, region.nodes, level_of_, region.level, work_done);
    std::erase_if(found, [&](const std::vector<uint32_t> &component) {
      const auto &to = successors_[component.front()];
      return component.size() == 1 &&
             std::find(to.begin(), to.end(), component.front()) == to.end();
    });
    return found;
  }
  void go_inside(const std::vector<uint32_t> &component, uint32_t header) {
    Region inner{{}, next_level_++};
    for (uint32_t node : component)
      if (node != header) {
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
    for (uint32_t node : component) {
      work_done += 1 + predecessors_[node].size();
      bool enters = node == root_;
      for (uint32_t from : predecessors_[node])
        enters |= mark_[from] != now_ && level_of_[from] != kNowhere;
      if (enters)
        entries.push_back(node);
    }
    return entries;
  }

  // Right after entries_of() the same.
  uint32_t best_header(const std::vector<uint32_t> &entries) const {
    uint32_t best = entries.front();
    ptrdiff_t most = -1;
    for (uint32_t entry : entries) {
      ptrdiff_t edges = std::count_if(predecessors_[entry].begin(), predecessors_[entry].end(),
                                      [&](uint32_t from) { return mark_[from] == now_; });
      if (entry == root_)
        edges = PTRDIFF_MAX;
      if (edges > most) {
        most = edges;
        best = entry;
      }
    }
    return best;
  }

  void copy_all_but(uint32_t header, const std::vector<uint32_t> &component, Region &region,
                    std::vector<uint32_t> &original) {
    mark(component);
    auto before = static_cast<uint32_t>(successors_.size());
    std::vector<std::pair<uint32_t, uint32_t>> copies; // node, copy
    copy_of_.resize(before);
    for (uint32_t node : component)
      if (node != header) {
        auto copy = static_cast<uint32_t>(successors_.size());
        copy_of_[node] = copy;
        copies.emplace_back(node, copy);
        successors_.push_back(Edges::value_type(successors_[node]));
        predecessors_.emplace_back();
        original.push_back(uint32_t{original[node]});
        level_of_.push_back(region.level);
        mark_.push_back(0);
        region.nodes.push_back(copy);
      }
    auto copied = [&](uint32_t node) {
      return node < before && mark_[node] == now_ && node != header;
    };
    std::vector<uint32_t> outside;
    for (auto [node, copy] : copies) {
      // What comes from outside goes to the copy now.
      NodeList stay;
      for (uint32_t from : predecessors_[node])
        if (mark_[from] == now_ || level_of_[from] == kNowhere) {
          stay.push_back(from);
        } else {
          outside.push_back(from);
          predecessors_[copy].push_back(from);
        }
      predecessors_[node] = std::move(stay);
    }
    std::sort(outside.begin(), outside.end());
    outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
    for (uint32_t from : outside) {
      work_done += successors_[from].size();
      for (uint32_t &to : successors_[from])
        if (copied(to))
          to = copy_of_[to];
    }
    for (auto [node, copy] : copies)
      for (uint32_t &to : successors_[copy]) {
        if (copied(to))
          to = copy_of_[to];
        predecessors_[to].push_back(copy);
        work_done++;
      }
  }

  uint64_t work_done = 0; // in nodes and edges

private:
  static constexpr uint32_t kNowhere = 0; // not reached, or not any more

  void mark(const std::vector<uint32_t> &nodes) {
    mark_.resize(successors_.size(), 0);
    now_++;
    for (uint32_t node : nodes)
      mark_[node] = now_;
  }

  Edges &successors_;
  uint32_t root_;
  std::vector<uint32_t> level_of_; // of the innermost region that a node is in
  Edges predecessors_;
  std::vector<uint32_t> mark_, copy_of_; // by node
  uint32_t now_ = 0;                     // the mark that counts
  Components components_;
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
  constexpr uint64_t kMaxPasses = 100;
  uint64_t most_work = kMaxPasses * (successors.size() + 100);
  for (Region region; regions.take(region);) {
    if (regions.work_done > most_work)
      return false;
    bool copied = true;
    while (copied) {
      copied = false;
      for (const auto &component : regions.components_of(region)) {
        auto entries = regions.entries_of(component);
        if (entries.size() < 2)
          continue;
        if (successors.size() + component.size() - 1 > most || regions.work_done > most_work)
          return false;
        regions.copy_all_but(regions.best_header(entries), component, region, copies);
        copied = true; // the region has changed
        break;
      }
    }
    for (const auto &component : regions.components_of(region)) {
      auto entries = regions.entries_of(component);
      if (entries.empty()) // all that led here goes to a copy now
        regions.leave_out(component);
      else
        regions.go_inside(component, entries.front());
    }
  }
  given = std::move(successors);
  original = std::move(copies);
  return true;
}

} // namespace binary
