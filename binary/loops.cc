// A loop is a strongly connected component: its header is the node of it to which a depth-first walk
// comes first, and the loops inside are the components of what is left without the header.
//
// Looking for components in each loop anew is quadratic in deep nests. Instead nodes are taken in the
// opposite order of the walk, so inner headers come first: the body of a header's loop is what reaches
// its back edges, and is merged into the header at once, by union-find. Edges that are neither of the
// walk's tree nor back edges could enter a loop beside its header; each waits at the nearest common
// ancestor of its ends, where it counts as an edge between what they have been merged into by then.

#include "binary/loops.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace binary {
namespace {

constexpr uint32_t kNone = Loop::kNone;

class Sets {
public:
  explicit Sets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }
  uint32_t find(uint32_t at) {
    while (parent_[at] != at)
      at = parent_[at] = parent_[parent_[at]];
    return at;
  }
  void merge(uint32_t at, uint32_t into) { parent_[at] = into; }

private:
  std::vector<uint32_t> parent_;
};

// Nodes are numbers in preorder of a depth-first walk.
class Nest {
public:
  Nest(const Edges &successors, uint32_t root)
      : successors_(successors), place(successors.size(), kNone) {
    walk(root);
    auto count = static_cast<uint32_t>(order.size());
    into_.resize(count);
    back_.resize(count);
    across_.resize(count);
    header_of.assign(count, kNone);
    has_loop.assign(count, false);
  }

  void find() {
    auto count = static_cast<uint32_t>(order.size());
    sort_edges();
    Sets merged(count);
    std::vector<uint32_t> in(count, kNone); // in the body of which header
    for (uint32_t header = count; header-- > 0;) {
      for (auto [from, to] : across_[header])
        into_[merged.find(to)].push_back(merged.find(from));
      std::vector<uint32_t> body;
      auto add = [&](uint32_t node) {
        node = merged.find(node);
        if (node == header || in[node] == header)
          return;
        in[node] = header;
        body.push_back(node);
      };
      has_loop[header] = !back_[header].empty();
      for (uint32_t from : back_[header])
        add(from);
      for (size_t i = 0; i < body.size(); i++) {
        add(parent_[body[i]]);
        for (uint32_t from : into_[body[i]])
          add(from);
      }
      for (uint32_t node : body) {
        header_of[node] = header;
        merged.merge(node, header);
      }
    }
  }

private:
  const Edges &successors_;

public:
  std::vector<uint32_t> order, place; // node by number, number by node
  std::vector<uint32_t> header_of;    // of the innermost loop that a node is in, but for its own
  std::vector<bool> has_loop;         // whether it is a header

private:
  void walk(uint32_t root) {
    std::vector<std::pair<uint32_t, size_t>> stack{{root, 0}};
    auto arrive = [&](uint32_t node, uint32_t parent) {
      place[node] = static_cast<uint32_t>(order.size());
      order.push_back(node);
      parent_.push_back(parent);
      last_.push_back(0);
    };
    arrive(root, kNone);
    while (!stack.empty()) {
      auto &[node, next] = stack.back();
      if (next == successors_[node].size()) {
        last_[place[node]] = static_cast<uint32_t>(order.size() - 1);
        stack.pop_back();
        continue;
      }
      uint32_t to = successors_[node][next++];
      if (place[to] == kNone) {
        arrive(to, place[node]);
        stack.push_back({to, 0});
      }
    }
  }

  // Back edges, edges of the tree, and the others by the nearest common ancestor of their ends: that is
  // the first node above the source that comes before the target in the walk.
  void sort_edges() {
    auto count = static_cast<uint32_t>(order.size());
    std::vector<std::vector<uint32_t>> crossing(count); // by target
    for (uint32_t from = 0; from < count; from++)
      for (uint32_t node : successors_[order[from]]) {
        uint32_t to = place[node];
        if (parent_[to] == from) // of the tree
          continue;
        if (to <= from && from <= last_[to])
          back_[to].push_back(from);
        else if (from < to) // further down
          across_[from].emplace_back(from, to);
        else
          crossing[to].push_back(from);
      }
    Sets above(count);
    for (uint32_t to = count; to-- > 0;) {
      for (uint32_t from : crossing[to])
        across_[above.find(from)].emplace_back(from, to);
      if (to)
        above.merge(to, parent_[to]);
    }
  }

  std::vector<uint32_t> parent_, last_; // of the walk's tree
  Edges into_, back_;                   // sources by target; into_: neither of the tree nor back
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> across_; // by the ancestor
};

void number_nest(Loops &loops) {
  std::vector<std::vector<uint32_t>> inside(loops.all.size() + 1);
  for (uint32_t i = 0; i < loops.all.size(); i++) {
    uint32_t parent = loops.all[i].parent;
    inside[parent == kNone ? loops.all.size() : parent].push_back(i);
  }
  uint32_t time = 0;
  std::vector<std::pair<uint32_t, size_t>> stack{{static_cast<uint32_t>(loops.all.size()), 0}};
  while (!stack.empty()) {
    auto &[loop, next] = stack.back();
    if (next < inside[loop].size()) {
      uint32_t inner = inside[loop][next++];
      loops.all[inner].first = time++;
      stack.push_back({inner, 0});
      continue;
    }
    if (loop < loops.all.size())
      loops.all[loop].last = time++;
    stack.pop_back();
  }
}

// What jumps back to headers, and which loops are entered elsewhere.
void find_entries(const Edges &successors, const std::vector<uint32_t> &nodes, Loops &loops,
                  const std::vector<uint32_t> &loop_of_header) {
  Sets reducible(loops.all.size() +
                 1); // a loop, or the first one around it that is not known to be
  auto outermost = static_cast<uint32_t>(loops.all.size());
  for (uint32_t from : nodes)
    for (uint32_t to : successors[from]) {
      uint32_t own = loop_of_header[to], loop = loops.innermost[to];
      if (own != kNone && loops.contains(own, from)) {
        auto &back = loops.all[own].back;
        if (back.empty() || back.back() != from)
          back.push_back(from);
        continue;
      }
      if (own != kNone)
        loop = loops.all[own].parent;
      for (loop = reducible.find(loop == kNone ? outermost : loop); loop != outermost;
           loop = reducible.find(loop)) {
        if (loops.contains(loop, from))
          break;
        loops.all[loop].irreducible = true;
        uint32_t around = loops.all[loop].parent;
        reducible.merge(loop, around == kNone ? outermost : around);
      }
    }
}

} // namespace

Loops find_loops(const Edges &successors, const Dominators &dominators, uint32_t root) {
  Nest nest(successors, root);
  nest.find();
  auto count = static_cast<uint32_t>(nest.order.size());
  // Of each header's loop: where control comes first, and how deep it is.
  std::vector<uint32_t> first(count), depth(count, 0), headers;
  for (uint32_t i = count; i-- > 0;) {
    uint32_t number = dominators.number[nest.order[i]];
    first[i] = nest.has_loop[i] && first[i] ? std::min(first[i], number + 1) : number + 1;
    if (uint32_t around = nest.header_of[i]; around != kNone)
      first[around] = first[around] ? std::min(first[around], first[i]) : first[i];
  }
  for (uint32_t i = 0; i < count; i++) {
    uint32_t around = nest.header_of[i];
    depth[i] = (around == kNone ? 0 : depth[around]) + nest.has_loop[i];
    if (nest.has_loop[i])
      headers.push_back(i);
  }
  // In the order in which control comes to them, a loop before those inside.
  std::sort(headers.begin(), headers.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(first[a], depth[a]) < std::tie(first[b], depth[b]);
  });
  Loops loops;
  std::vector<uint32_t> index(count, kNone), loop_of_header(successors.size(), kNone);
  for (uint32_t header : headers) {
    index[header] = static_cast<uint32_t>(loops.all.size());
    loop_of_header[nest.order[header]] = index[header];
    Loop loop;
    loop.header = nest.order[header];
    loop.depth = depth[header];
    if (uint32_t around = nest.header_of[header]; around != kNone)
      loop.parent = index[around];
    loops.all.push_back(std::move(loop));
  }
  loops.innermost.assign(successors.size(), kNone);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t header = nest.has_loop[i] ? i : nest.header_of[i];
    loops.innermost[nest.order[i]] = header == kNone ? kNone : index[header];
  }
  number_nest(loops);
  find_entries(successors, nest.order, loops, loop_of_header);
  return loops;
}

} // namespace binary
