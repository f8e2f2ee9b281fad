// Drawing a call tree.
//
// Stacks are deep and most of their frames have a single callee that matters: indenting each of them
// would push names out of the terminal. So only a function whose amount is parted indents what is
// below it. What a function asks for itself, and what is left out, are lines as well where they
// matter, so that the lines below a function add up to it.

#include "report/call_tree.h"

#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace report {
namespace {

using analyze::CallTree;
using analyze::TreeAmounts;
using analyze::TreeNode;

struct Column {
  const char *key, *heading;
  std::function<std::string(const TreeAmounts &)> value;
};

// The one of the tree's key first, then the share, then the others.
std::vector<Column> columns_for(const CallTree &tree, const analyze::HeapResult &result) {
  auto bytes = [](uint64_t n) { return base::format_bytes(double(n)); };
  auto count = [](uint64_t n) { return base::format_count(double(n)); };
  std::vector<Column> all = {
      {"bytes", "bytes", [=](const TreeAmounts &a) { return bytes(a.bytes); }},
      {"count", "objects", [=](const TreeAmounts &a) { return count(a.objects); }},
      {"accesses", "accesses", [=](const TreeAmounts &a) { return count(a.accesses); }},
      {"live", "live bytes", [=](const TreeAmounts &a) { return bytes(a.live_bytes); }},
      {"peak", "at peak", [=](const TreeAmounts &a) { return bytes(a.at_peak_bytes); }}};
  std::string key = tree.query.key->key;
  std::vector<Column> columns = {
      *std::find_if(all.begin(), all.end(), [&](const Column &c) { return c.key == key; })};
  double whole = double(std::max<uint64_t>(1, tree.query.key->of(tree.root.total)));
  auto of = tree.query.key->of;
  columns.push_back({"", "share", [whole, of](const TreeAmounts &a) {
                       return base::format_share(double(of(a)) / whole);
                     }});
  for (size_t index = 0; index < 3; index++)
    if (all[index].key != key &&
        (result.accesses_counted || std::string(all[index].key) != "accesses"))
      columns.push_back(all[index]);
  return columns;
}

class Drawing {
public:
  Drawing(const CallTree &tree, std::vector<Column> columns)
      : tree_(tree), columns_(std::move(columns)),
        least_(tree.query.least_share * double(amount(tree.root.total))) {
    for (const Column &column : columns_)
      table_.column(column.heading, Table::Align::right);
    table_.column(tree.query.bottom_up ? "function, and below it what called it"
                                       : "function, and below it what it called",
                  Table::Align::left);
  }

  std::string text(const Style &style) {
    bool several = tree_.root.children.size() > 1;
    for (const TreeNode &root : tree_.root.children)
      draw(root, "", "", several);
    if (matters(tree_.root.others))
      line(tree_.root.others, "", others_name(tree_.root));
    return table_.text(style);
  }

private:
  uint64_t amount(const TreeAmounts &amounts) const { return tree_.query.key->of(amounts); }
  bool matters(const TreeAmounts &amounts) const {
    return amount(amounts) > 0 && double(amount(amounts)) >= least_;
  }

  static std::string others_name(const TreeNode &node) {
    return fmt::format("({} {})", node.others_count, node.others_count == 1 ? "other" : "others");
  }

  void line(const TreeAmounts &amounts, const std::string &drawn, const std::string &name) {
    std::vector<std::string> cells;
    for (const Column &column : columns_)
      cells.push_back(column.value(amounts));
    cells.push_back(drawn + name);
    table_.row(std::move(cells));
  }

  static std::string name(const TreeNode &node) {
    analyze::Frame frame;
    frame.function = node.function;
    std::string text = analyze::brief_place(frame);
    return node.recursive ? text + " (recursive)" : text;
  }

  // `drawn` stands before the node itself, `below` before what is below it; `indent`: even if that
  // is a single function.
  void draw(const TreeNode &node, const std::string &drawn, const std::string &below,
            bool indent = false) {
    line(node.total, drawn, name(node));
    bool self = !node.children.empty() && matters(node.self), others = matters(node.others);
    size_t parts = node.children.size() + self + others;
    if (parts == 1 && !node.children.empty() && !indent)
      return draw(node.children.front(), below, below);
    size_t part = 0;
    auto glyph = [&] { return ++part == parts ? "└─ " : "├─ "; };
    for (const TreeNode &child : node.children) {
      std::string before = below + glyph();
      draw(child, before, below + (part == parts ? "   " : "│  "));
    }
    if (self)
      line(node.self, below + glyph(), "(itself)");
    if (others)
      line(node.others, below + glyph(), others_name(node));
  }

  const CallTree &tree_;
  std::vector<Column> columns_;
  double least_;
  Table table_;
};

Json amounts_json(const TreeAmounts &amounts, bool peak_is_divided) {
  return {{"bytes", amounts.bytes},
          {"alloc_count", amounts.objects},
          {"access_count", amounts.accesses},
          {"live_bytes", amounts.live_bytes},
          {"at_peak_bytes", peak_is_divided ? Json(amounts.at_peak_bytes) : Json(nullptr)}};
}

Json node_json(const TreeNode &node, const CallTree &tree, bool peak_is_divided) {
  double whole = double(std::max<uint64_t>(1, tree.query.key->of(tree.root.total)));
  Json json = {{"function", node.function},   {"module", node.module},
               {"file", node.file},           {"line", node.line},
               {"recursive", node.recursive}, {"total", amounts_json(node.total, peak_is_divided)}};
  json["total_share"] = double(tree.query.key->of(node.total)) / whole;
  json["self"] = amounts_json(node.self, peak_is_divided);
  json["left_out"] = amounts_json(node.others, peak_is_divided);
  json["left_out_count"] = node.others_count;
  json["children"] = Json::array();
  for (const TreeNode &child : node.children)
    json["children"].push_back(node_json(child, tree, peak_is_divided));
  return json;
}

} // namespace

std::string tree_text(const CallTree &tree, const analyze::HeapResult &result, const Style &style) {
  std::string text = "\n" + style.strong(tree.query.key->question) + "\n";
  if (!result.peak_is_divided && std::string_view(tree.query.key->key) == "peak")
    return text + "  not known\n";
  if (tree.root.children.empty() && tree.root.others_count == 0)
    return text + "  nothing\n";
  text += Drawing(tree, columns_for(tree, result)).text(style);
  if (tree.query.least_share > 0)
    text += style.faint(fmt::format("  parts under {:g} % are left out; --tree-min 0% shows all",
                                    tree.query.least_share * 100)) +
            "\n";
  return text;
}

Json tree_json(const CallTree &tree, bool peak_is_divided) {
  Json json = {{"key", tree.query.key->key},
               {"direction", tree.query.bottom_up ? "bottom-up" : "top-down"},
               {"min_share", tree.query.least_share},
               {"total", amounts_json(tree.root.total, peak_is_divided)},
               {"left_out", amounts_json(tree.root.others, peak_is_divided)},
               {"left_out_count", tree.root.others_count}};
  json["children"] = Json::array();
  for (const TreeNode &root : tree.root.children)
    json["children"].push_back(node_json(root, tree, peak_is_divided));
  return json;
}

} // namespace report
