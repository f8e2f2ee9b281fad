// Dominators, loops and the copying of irreducible ones, on a thousand random graphs each, against
// what the words mean: who is reached when a node is taken away, who reaches whom.

#include "binary/loops.h"
#include "unit/binary/random_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace {

using namespace binary;
using binary_test::below;
using binary_test::random_graph;

constexpr unsigned kGraphs = 1000;
constexpr uint32_t kNobody = UINT32_MAX;
using Set = std::set<uint32_t>;

// What `root` reaches by edges between nodes for which `allowed` holds.
template <class Allowed> Set reached(const Edges &edges, uint32_t root, Allowed allowed) {
  Set seen;
  if (!allowed(root))
    return seen;
  std::vector<uint32_t> work{root};
  seen.insert(root);
  while (!work.empty()) {
    uint32_t node = work.back();
    work.pop_back();
    for (uint32_t to : edges[node])
      if (allowed(to) && seen.insert(to).second)
        work.push_back(to);
  }
  return seen;
}
Set reached(const Edges &edges, uint32_t root) {
  return reached(edges, root, [](uint32_t) { return true; });
}

// is[a][b]: a dominates b; of nodes that are not reached, only of themselves.
std::vector<std::vector<bool>> dominance(const Edges &edges, const Set &live) {
  std::vector<std::vector<bool>> is(edges.size(), std::vector<bool>(edges.size()));
  for (uint32_t a = 0; a < edges.size(); a++) {
    Set without = reached(edges, 0, [&](uint32_t node) { return node != a; });
    for (uint32_t b = 0; b < edges.size(); b++)
      is[a][b] = a == b || (live.contains(b) && !without.contains(b));
  }
  return is;
}

std::string text(const Edges &edges) {
  std::string result;
  for (uint32_t node = 0; node < edges.size(); node++) {
    result += std::to_string(node) + " ->";
    for (uint32_t to : edges[node])
      result += " " + std::to_string(to);
    result += "\n";
  }
  return result;
}

template <class Check> void on_random_graphs(uint64_t seed, Check check) {
  std::mt19937_64 random(seed);
  for (unsigned i = 0; i < kGraphs; i++) {
    Edges edges = random_graph(random);
    SCOPED_TRACE("graph " + std::to_string(i) + "\n" + text(edges));
    check(edges, random);
    if (testing::Test::HasFailure())
      return;
  }
}

TEST(Dominators, AreWhatCutsNodesOff) {
  on_random_graphs(1, [](const Edges &edges, std::mt19937_64 &) {
    Dominators found = dominators(edges, 0);
    Set live = reached(edges, 0);
    auto is = dominance(edges, live);
    EXPECT_EQ(Set(found.order.begin(), found.order.end()), live);
    EXPECT_EQ(found.order.size(), live.size());
    EXPECT_EQ(found.order.front(), 0u);
    for (uint32_t a = 0; a < edges.size(); a++) {
      EXPECT_EQ(found.number[a] != kNobody, live.contains(a));
      EXPECT_EQ(found.immediate[a] != kNobody, live.contains(a));
      for (uint32_t b = 0; b < edges.size(); b++)
        EXPECT_EQ(found.dominates(a, b), is[a][b]) << a << " of " << b;
    }
    for (uint32_t i = 0; i < found.order.size(); i++) {
      uint32_t node = found.order[i];
      EXPECT_EQ(found.number[node], i);
      if (i == 0) {
        EXPECT_EQ(found.immediate[node], node);
        continue;
      }
      // The immediate one is a strict dominator that all strict dominators dominate.
      uint32_t nearest = found.immediate[node];
      EXPECT_TRUE(nearest != node && is[nearest][node]);
      EXPECT_LT(found.number[nearest], i); // reverse postorder
      for (uint32_t other = 0; other < edges.size(); other++)
        if (other != node && is[other][node])
          EXPECT_TRUE(is[other][nearest]) << other << ", " << nearest << " of " << node;
      const auto &children = found.children[nearest];
      EXPECT_EQ(std::count(children.begin(), children.end(), node), 1);
    }
    size_t children = 0;
    for (size_t node = 0; node < found.children.size(); node++)
      children += found.children[node].size();
    EXPECT_EQ(children + 1, live.size());
  });
}

// Where definitions meet, by the words: what a definition dominates a predecessor of, but not itself,
// is in its frontier; a join is a definition.
Set iterated_frontier(const Edges &edges, const Set &live, const std::vector<std::vector<bool>> &is,
                      Set definitions) {
  Set joins;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t node : Set(definitions))
      for (uint32_t from : live)
        for (uint32_t to : edges[from])
          if (is[node][from] && (!is[node][to] || node == to) && joins.insert(to).second) {
            definitions.insert(to);
            changed = true;
          }
  }
  return joins;
}

TEST(JoinPoints, AreIteratedFrontiers) {
  on_random_graphs(2, [](const Edges &edges, std::mt19937_64 &random) {
    Set live = reached(edges, 0);
    auto is = dominance(edges, live);
    std::vector<uint64_t> defined(edges.size(), 0);
    std::vector<Set> definitions(64);
    for (uint32_t variable : {0u, 1u, 5u, 63u}) {
      definitions[variable].insert(0); // the root defines all
      for (uint32_t i = below(random, 6); i; i--)
        if (uint32_t node = below(random, edges.size()); live.contains(node)) {
          defined[node] |= uint64_t{1} << variable;
          definitions[variable].insert(node);
        }
    }
    std::vector<uint64_t> joins = join_points(edges, dominators(edges, 0), defined);
    for (uint32_t variable : {0u, 1u, 5u, 63u}) {
      Set found;
      for (uint32_t node = 0; node < edges.size(); node++)
        if (joins[node] >> variable & 1)
          found.insert(node);
      EXPECT_EQ(found, iterated_frontier(edges, live, is, definitions[variable])) << variable;
    }
  });
}

// Shapes on which simple algorithms are quadratic, with a hundred thousand nodes: no test of time, but
// one that would not end.
TEST(LargeGraphs, AreDoneInTimeThatGrowsWithThem) {
  constexpr uint32_t kNodes = 100'000, kHalf = kNodes / 2;
  Edges chain(kNodes);  // loops in a row
  Edges nest(kNodes);   // loops in each other, half the nodes are headers
  Edges ladder(kNodes); // each step can be entered from outside: irreducible
  Edges hub(kNodes);    // what computed jumps are
  for (uint32_t node = 0; node + 1 < kNodes; node++) {
    chain[node] = {node + 1};
    if (node % 3 == 2)
      chain[node].push_back(node - 1);
    nest[node] = {node + 1};
    if (node >= kHalf)
      nest[node].push_back(kNodes - 1 - node);
    ladder[node] = {node + 1};
    if (node > 0)
      ladder[0].push_back(node + 1);
    if (node > 1)
      ladder[node].push_back(node - 1);
    hub[node] = {1};
    if (node > 1)
      hub[1].push_back(node);
  }
  for (const Edges &edges : {chain, nest, ladder, hub}) {
    Dominators found = dominators(edges, 0);
    EXPECT_GE(found.order.size(), kNodes - 1);
    Loops loops = find_loops(edges, found, 0);
    EXPECT_FALSE(loops.all.empty());
    std::vector<uint64_t> defined(edges.size(), 0);
    for (uint32_t node = 0; node < edges.size(); node += 7)
      defined[node] = uint64_t{1} << node % 64;
    EXPECT_EQ(join_points(edges, found, defined).size(), edges.size());
    Edges reducible = edges;
    std::vector<uint32_t> original(edges.size());
    std::iota(original.begin(), original.end(), 0u);
    bool done = make_reducible(reducible, 0, original, 4 * edges.size());
    bool was = std::none_of(loops.all.begin(), loops.all.end(),
                            [](const Loop &loop) { return loop.irreducible; });
    EXPECT_TRUE(done || !was);
  }
}

// Strongly connected components among `nodes`, of more than one node or with an edge to themselves.
std::vector<Set> cycles(const Edges &edges, const Set &nodes) {
  std::vector<Set> found;
  std::vector<Set> from(edges.size());
  auto inside = [&](uint32_t node) { return nodes.contains(node); };
  for (uint32_t node : nodes)
    from[node] = reached(edges, node, inside);
  Set left = nodes;
  while (!left.empty()) {
    uint32_t node = *left.begin();
    Set component;
    for (uint32_t other : from[node])
      if (from[other].contains(node))
        component.insert(other);
    for (uint32_t member : component)
      left.erase(member);
    const auto &to = edges[node];
    if (component.size() > 1 || std::find(to.begin(), to.end(), node) != to.end())
      found.push_back(component);
  }
  return found;
}

Set entries_of(const Edges &edges, const Set &live, const Set &component) {
  Set entries;
  if (component.contains(0))
    entries.insert(0);
  for (uint32_t from : live)
    if (!component.contains(from))
      for (uint32_t to : edges[from])
        if (component.contains(to))
          entries.insert(to);
  return entries;
}

Set nodes_of(const Loops &loops, uint32_t loop) {
  Set nodes;
  for (uint32_t node = 0; node < loops.innermost.size(); node++)
    if (loops.contains(loop, node))
      nodes.insert(node);
  return nodes;
}

// Checks the loops directly in `nodes`, then those inside each; returns how many there are.
size_t check_nest(const Edges &edges, const Set &live, const Loops &loops, const Set &nodes,
                  uint32_t parent, unsigned depth) {
  size_t count = 0;
  for (const Set &component : cycles(edges, nodes)) {
    uint32_t which = kNobody;
    for (uint32_t loop = 0; loop < loops.all.size(); loop++)
      if (loops.all[loop].parent == parent && component.contains(loops.all[loop].header)) {
        EXPECT_EQ(which, kNobody) << "two loops for one component";
        which = loop;
      }
    EXPECT_NE(which, kNobody) << "a component of " << component.size() << " is no loop";
    if (which == kNobody)
      return count;
    const Loop &loop = loops.all[which];
    EXPECT_EQ(nodes_of(loops, which), component);
    EXPECT_EQ(loop.depth, depth);
    Set entries = entries_of(edges, live, component);
    EXPECT_TRUE(entries.contains(loop.header));
    EXPECT_EQ(loop.irreducible, entries.size() > 1);
    Set back;
    for (uint32_t node : component)
      if (std::find(edges[node].begin(), edges[node].end(), loop.header) != edges[node].end())
        back.insert(node);
    EXPECT_EQ(Set(loop.back.begin(), loop.back.end()), back);
    Set inner = component;
    inner.erase(loop.header);
    count += 1 + check_nest(edges, live, loops, inner, which, depth + 1);
  }
  return count;
}

TEST(Loops, AreNestedComponents) {
  unsigned irreducible = 0, nested = 0;
  on_random_graphs(3, [&](const Edges &edges, std::mt19937_64 &) {
    Set live = reached(edges, 0);
    Loops loops = find_loops(edges, dominators(edges, 0), 0);
    EXPECT_EQ(check_nest(edges, live, loops, live, Loop::kNone, 1), loops.all.size());
    Set heads;
    for (uint32_t i = 0; i < loops.all.size(); i++) {
      const Loop &loop = loops.all[i];
      irreducible += loop.irreducible;
      nested = std::max(nested, loop.depth);
      EXPECT_TRUE(heads.insert(loop.header).second) << "head of two loops: " << loop.header;
      EXPECT_TRUE(loop.parent == Loop::kNone || loop.parent < i) << "a parent comes first";
    }
    // The innermost loop of a node is the deepest one that contains it.
    for (uint32_t node = 0; node < edges.size(); node++) {
      unsigned deepest = 0;
      for (uint32_t loop = 0; loop < loops.all.size(); loop++)
        if (loops.contains(loop, node))
          deepest = std::max(deepest, loops.all[loop].depth);
      EXPECT_EQ(loops.depth_of(node), deepest);
      if (!live.contains(node))
        EXPECT_EQ(loops.innermost[node], Loop::kNone);
    }
  });
  EXPECT_GT(irreducible, 200u); // the graphs are worth something
  EXPECT_GT(nested, 3u);
}

TEST(Loops, ReducibleOnesAreNaturalLoops) {
  on_random_graphs(4, [](const Edges &edges, std::mt19937_64 &) {
    Set live = reached(edges, 0);
    auto is = dominance(edges, live);
    Loops loops = find_loops(edges, dominators(edges, 0), 0);
    Edges reversed(edges.size());
    for (uint32_t from : live)
      for (uint32_t to : edges[from])
        reversed[to].push_back(from);
    auto natural = [&](uint32_t head) { // with what reaches an edge back without passing the head
      Set nodes{head};
      for (uint32_t from : reversed[head])
        if (is[head][from])
          nodes.merge(reached(reversed, from, [&](uint32_t node) { return node != head; }));
      return nodes;
    };
    for (uint32_t i = 0; i < loops.all.size(); i++) {
      const Loop &loop = loops.all[i];
      Set nodes = nodes_of(loops, i);
      bool all = std::all_of(nodes.begin(), nodes.end(),
                             [&](uint32_t node) { return is[loop.header][node]; });
      EXPECT_EQ(all, !loop.irreducible) << "whether " << loop.header << " dominates its loop";
      if (!loop.irreducible)
        EXPECT_EQ(nodes, natural(loop.header)) << "head " << loop.header;
    }
    // Whatever is jumped back to by what it dominates is a head.
    for (uint32_t from : live)
      for (uint32_t to : edges[from])
        if (is[to][from])
          EXPECT_TRUE(std::any_of(loops.all.begin(), loops.all.end(), [&](const Loop &loop) {
            return loop.header == to;
          })) << to;
  });
}

// Nothing but edges to dominators closes a cycle.
bool is_reducible(const Edges &edges) {
  Set live = reached(edges, 0);
  auto is = dominance(edges, live);
  Edges forward(edges.size());
  for (uint32_t from : live)
    for (uint32_t to : edges[from])
      if (!is[to][from])
        forward[from].push_back(to);
  return cycles(forward, live).empty();
}

std::vector<uint32_t> numbers(size_t count) {
  std::vector<uint32_t> result(count);
  std::iota(result.begin(), result.end(), 0u);
  return result;
}

TEST(MakeReducible, LeavesNoIrreducibleLoopAndNoOtherEdges) {
  unsigned copied = 0, refused = 0;
  on_random_graphs(5, [&](const Edges &given, std::mt19937_64 &random) {
    constexpr size_t kMax = 500;
    Edges edges = given;
    auto original = numbers(given.size());
    if (!make_reducible(edges, 0, original, kMax)) {
      refused++;
      EXPECT_EQ(edges, given);
      EXPECT_EQ(original, numbers(given.size()));
      EXPECT_FALSE(is_reducible(given));
      return;
    }
    EXPECT_LE(edges.size(), std::max(kMax, given.size()));
    ASSERT_EQ(original.size(), edges.size());
    copied += edges.size() > given.size();
    if (is_reducible(given))
      EXPECT_EQ(edges, given);
    Loops loops = find_loops(edges, dominators(edges, 0), 0);
    for (const Loop &loop : loops.all)
      EXPECT_FALSE(loop.irreducible) << "head " << loop.header;
    if (edges.size() <= 150)
      EXPECT_TRUE(is_reducible(edges));
    // Each node has the edges of what it is a copy of, in their order: so a walk in one graph is one
    // in the other.
    for (uint32_t node = 0; node < edges.size(); node++) {
      ASSERT_LT(original[node], given.size());
      if (node < given.size())
        EXPECT_EQ(original[node], node);
      NodeList to;
      for (uint32_t each : edges[node])
        to.push_back(original[each]);
      EXPECT_EQ(to, given[original[node]]) << "of " << node;
    }
    // The same once more as walks: in the old graph, followed in the new one; and the other way.
    for (unsigned walk = 0; walk < 20; walk++)
      for (uint32_t at = 0, in_new = 0, step = 0; step < 60 && !given[at].empty(); step++) {
        at = given[at][below(random, given[at].size())];
        uint32_t next = kNobody;
        for (uint32_t to : edges[in_new])
          if (original[to] == at) {
            EXPECT_EQ(next, kNobody) << "two ways on";
            next = to;
          }
        ASSERT_NE(next, kNobody) << "no way on to " << at;
        in_new = next;
      }
    for (unsigned walk = 0; walk < 20; walk++)
      for (uint32_t at = 0, step = 0; step < 60 && !edges[at].empty(); step++) {
        uint32_t to = edges[at][below(random, edges[at].size())];
        const auto &old = given[original[at]];
        ASSERT_NE(std::find(old.begin(), old.end(), original[to]), old.end());
        at = to;
      }
  });
  EXPECT_GT(copied, 100u);
  EXPECT_GT(refused, 0u);
}

TEST(MakeReducible, CopiesNoMoreThanAllowed) {
  on_random_graphs(6, [](const Edges &given, std::mt19937_64 &random) {
    Edges edges = given;
    auto original = numbers(given.size());
    size_t most = given.size() + below(random, 30);
    if (make_reducible(edges, 0, original, most)) {
      EXPECT_LE(edges.size(), most);
      EXPECT_EQ(original.size(), edges.size());
    } else {
      EXPECT_EQ(edges, given);
      EXPECT_EQ(original, numbers(given.size()));
    }
  });
}

TEST(MakeReducible, KeepsWhatTheCallerSaysOfNodes) {
  // 0 enters the loop of 1 and 2 at both.
  Edges edges{{1, 2}, {2}, {1, 3}, {}};
  std::vector<uint32_t> original{100, 101, 102, 103};
  ASSERT_TRUE(make_reducible(edges, 0, original, 100));
  ASSERT_GT(original.size(), 4u);
  for (size_t copy = 4; copy < original.size(); copy++)
    EXPECT_TRUE(original[copy] == 101 || original[copy] == 102);
}

} // namespace
