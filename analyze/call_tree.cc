// Contexts as a tree.
//
// The idea: each context is a path of functions and a handful of amounts; add the amounts along the
// path, then sort and cut. Heap info blocks are not summed in nodes: they are a kilobyte, a tree has
// a node for each frame, and minima, histograms and the like mean nothing for a function that only
// calls. Folding all recursion, not only direct, was refused: which of the functions of a cycle a
// node then stands for depends on where the cycle is entered.
//
// What is cut is summed in its parent (`others`), so that a reader sees that the parts are the whole.

#include "analyze/call_tree.h"

#include "analyze/ownership.h"
#include "base/stable_sort.h"

#include <algorithm>
#include <map>
#include <memory>

namespace analyze {
namespace {

struct Growing {
  TreeNode node;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Growing>> children;
};

TreeAmounts amounts_of(const HeapContextRow &row) {
  return {row.sums.all.size_total, row.sums.all.alloc_count, row.sums.accesses(),
          row.sums.leaked_bytes(), row.sums.at_peak_bytes};
}

bool called_main(const image::Frame &frame) {
  return frame.linkage_name == "_start" || is_allocation_machinery(frame);
}

// The frames that the tree shows: from the owner outwards, both ends included.
struct Range {
  size_t innermost, outermost;
};
Range shown(const HeapContextRow &row) {
  size_t outermost = row.frames.size() - 1;
  // What libc calls is main, also where it has no name.
  for (size_t index = row.owner + 1; index <= outermost; index++)
    if (row.frames[index].linkage_name.starts_with("__libc_start"))
      outermost = index - 1;
  while (outermost > row.owner && called_main(row.frames[outermost]))
    outermost--;
  return {std::min(row.owner, outermost), outermost};
}

// A module without symbols is one node: its addresses mean nothing to anybody.
std::string name_of(const image::Frame &frame) {
  if (!frame.linkage_name.empty())
    return frame.function;
  return frame.module.empty() ? "(unknown)" : "[" + image::base_name(frame.module) + "]";
}

Growing *child(Growing *parent, const std::string &function, const image::Frame *frame) {
  std::string module = frame ? frame->module : "";
  auto &slot = parent->children[{function, module}];
  if (!slot) {
    slot = std::make_unique<Growing>();
    slot->node.function = function;
    slot->node.module = module;
    if (frame && !frame->linkage_name.empty()) {
      slot->node.file = frame->function_file;
      slot->node.line = frame->function_start_line;
    }
  }
  return slot.get();
}

void add_path(Growing &root, const HeapContextRow &row, bool bottom_up) {
  TreeAmounts amounts = amounts_of(row);
  auto [innermost, outermost] = shown(row);
  Growing *at = &root;
  at->node.total.add(amounts);
  auto descend = [&](const std::string &function, const image::Frame *frame) {
    if (frame && at != &root && at->node.function == function && at->node.module == frame->module) {
      at->node.recursive = true;
      return;
    }
    at = child(at, function, frame);
    at->node.total.add(amounts);
    if (frame && row.recursion.objects && function == row.recursion.function)
      at->node.recursive = true; // folded when it was recorded
  };
  constexpr const char *kCut = "(outer frames are missing)";
  bool cut =
      row.stack_cut && row.frames[outermost].linkage_name != "main"; // nothing is outside main
  if (cut && !bottom_up)
    descend(kCut, nullptr);
  for (size_t step = 0; step <= outermost - innermost; step++) {
    const image::Frame &frame = row.frames[bottom_up ? innermost + step : outermost - step];
    descend(name_of(frame), &frame);
  }
  if (cut && bottom_up)
    descend(kCut, nullptr);
  at->node.self.add(amounts);
}

TreeNode cut(Growing &growing, const TreeQuery &query, double least) {
  TreeNode node = std::move(growing.node);
  for (auto &[name, child] : growing.children) {
    if (double(query.key->of(child->node.total)) < least) {
      node.others.add(child->node.total);
      node.others_count++;
    } else {
      node.children.push_back(cut(*child, query, least));
    }
  }
  base::stable_sort(node.children, [&](const TreeNode &a, const TreeNode &b) {
    return query.key->of(a.total) > query.key->of(b.total);
  });
  return node;
}

} // namespace

void TreeAmounts::add(const TreeAmounts &other) {
  bytes += other.bytes;
  objects += other.objects;
  accesses += other.accesses;
  live_bytes += other.live_bytes;
  at_peak_bytes += other.at_peak_bytes;
}

std::span<const TreeKey> tree_keys() {
  static constexpr TreeKey kKeys[] = {
      {"bytes", "Where does the memory come from?", false,
       [](const TreeAmounts &a) { return a.bytes; }},
      {"count", "Where do the allocations come from?", false,
       [](const TreeAmounts &a) { return a.objects; }},
      {"accesses", "Where does the memory come from that is accessed?", true,
       [](const TreeAmounts &a) { return a.accesses; }},
      {"live", "Where does the memory come from that is still allocated at the end?", false,
       [](const TreeAmounts &a) { return a.live_bytes; }},
      {"peak", "Where did the memory at the peak come from?", false,
       [](const TreeAmounts &a) { return a.at_peak_bytes; }},
  };
  return kKeys;
}

CallTree call_tree(const HeapResult &result, const TreeQuery &query) {
  Growing root;
  for (const HeapContextRow &row : result.contexts)
    if (query.key->of(amounts_of(row)) > 0)
      add_path(root, row, query.bottom_up);
  double least = std::max(1.0, query.least_share * double(query.key->of(root.node.total)));
  return {query, cut(root, query, least)};
}

} // namespace analyze
