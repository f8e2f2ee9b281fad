// Which functions an answer of `assay explain` shows, and in which order.
//
// The orders are one table of key, question and rank: help, check and sorting cannot disagree.
// Functions of equal rank come by address, so the order is always the same. A filter may match the
// name or the linkage name; how many it left out is counted, because the answer says so.

#include "report/explain.h"

#include "analyze/regular_expression.h"
#include "base/sort_key.h"

#include <algorithm>
#include <utility>

namespace report {
namespace {

using analyze::ExplainedFunction;

// The order in which --sort lists them. The first is the default: what costs most to trace.
struct Order {
  FunctionOrder shown;
  uint64_t (*rank)(const ExplainedFunction &); // largest first; none: by address
};

constexpr Order kOrders[] = {
    {{"accesses", "Which functions have the most memory accesses?"},
     [](const ExplainedFunction &f) { return f.figures.accesses; }},
    {{"affine", "Which functions have the most accesses with an affine address?"},
     [](const ExplainedFunction &f) { return f.figures.affine; }},
    {{"in_loops", "Which functions have the most accesses in loops?"},
     [](const ExplainedFunction &f) { return f.figures.in_loops; }},
    {{"definitions", "Which functions need the most definitions?"},
     [](const ExplainedFunction &f) { return f.figures.definitions; }},
    {{"loops", "Which functions have the most loops?"},
     [](const ExplainedFunction &f) { return f.figures.loops; }},
    {{"size", "Which functions have the most code?"},
     [](const ExplainedFunction &f) { return f.bytes; }},
    {{"address", "Which functions are there, by address?"}, nullptr},
};

const Order &order_of(const std::string &key) {
  return base::chosen_order(std::span<const Order>(kOrders), key,
                            [](const Order &order) { return order.shown.key; });
}

} // namespace

std::span<const FunctionOrder> function_orders() {
  static const std::vector<FunctionOrder> orders = [] {
    std::vector<FunctionOrder> all;
    for (const Order &order : kOrders)
      all.push_back(order.shown);
    return all;
  }();
  return orders;
}

const FunctionOrder &function_order(const std::string &key) {
  return order_of(key).shown;
}

SelectedFunctions selected_functions(const analyze::Explanation &explanation,
                                     const FunctionQuery &query) {
  const Order &order = order_of(query.sort);
  analyze::TextFilter filter(query.filter);
  SelectedFunctions selected;
  std::vector<std::pair<uint64_t, const ExplainedFunction *>> ranked;
  for (const ExplainedFunction &function : explanation.functions) {
    if (filter.keeps(function.name) || filter.keeps(function.linkage_name))
      ranked.emplace_back(order.rank ? order.rank(function) : 0, &function);
    else
      selected.filtered_out++;
  }
  std::sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) {
    return a.first != b.first ? a.first > b.first : a.second->address < b.second->address;
  });
  selected.functions.reserve(ranked.size());
  for (const auto &[rank, function] : ranked)
    selected.functions.push_back(function);
  return selected;
}

} // namespace report
