// A list is matched as it is written and as it is understood, in this order: of each place, the last
// one counts. Its children are then the bases and the members, in their order; what is not written
// has a child as well. Zeros are alike in all their forms, as `{0}` gives one to whatever member
// comes first, and nothing to the others.

#include "cli/member_values.h"

#include <algorithm>
#include <map>
#include <set>

namespace cli {
namespace {

struct Node {
  std::string kind, type, text; // the class; the type without its other names; all but places
  std::string place;
  std::vector<Node> children;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// How far a line of a dump is behind its parent's begin: "| `-IntegerLiteral" has depth 2.
size_t depth_of(std::string_view line) {
  return std::min(line.find_first_not_of("|`- "), line.size()) / 2;
}

bool is_place(std::string_view word) {
  return word.starts_with("0x") || word.starts_with("col:") || word.starts_with("line:");
}

// What a line says of the node, in words: neither addresses nor places, which are in <>.
std::string without_places(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    if (line.starts_with('\'')) {
      const size_t end = std::min(line.find('\'', 1), line.size() - 1) + 1;
      text += line.substr(0, end);
      line.remove_prefix(end);
    } else if (line.starts_with(" <")) {
      const size_t end = line.find("> ");
      line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    } else {
      const size_t end = std::min(line.find_first_of(" '", 1), line.size());
      const std::string_view word = line.substr(line.starts_with(' '), end - line.starts_with(' '));
      if (!is_place(word))
        text += line.substr(0, end);
      line.remove_prefix(end);
    }
  }
  return text;
}

// The last one of 'Alias':'struct S', with which the first quoted text of a line ends.
std::string type_of(std::string_view text) {
  size_t begin = text.find('\'');
  std::string_view type;
  while (begin < text.size()) {
    const size_t end = text.find('\'', begin + 1);
    if (end == std::string_view::npos)
      break;
    type = text.substr(begin + 1, end - begin - 1);
    begin = text.substr(end).starts_with("':'") ? end + 2 : text.size();
  }
  for (std::string_view qualifier : {"const ", "volatile "})
    if (type.starts_with(qualifier))
      type.remove_prefix(qualifier.size());
  return std::string(type);
}

// InitListExpr 0x55d3 </folder/file.c:9:17, col:27> 'struct S'
struct Range {
  std::string whole, line; // file:line:column and so on; file:line
};
Range range_of(std::string_view line) {
  Range range;
  const size_t begin = line.find('<') + 1, end = line.find("> '");
  if (begin == 0 || end == std::string_view::npos || end < begin)
    return range;
  range.whole = line.substr(begin, end - begin);
  const size_t file = range.whole.find(':'),
               number = file == std::string::npos ? file : range.whole.find(':', file + 1);
  if (range.whole.starts_with('/') && number != std::string::npos)
    range.line = range.whole.substr(0, number);
  return range;
}

Node node_of(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of("|`- "), line.size()));
  constexpr std::string_view kFiller = "array_filler: ";
  if (line.starts_with(kFiller))
    line.remove_prefix(kFiller.size());
  Node node;
  node.place = range_of(line).whole;
  node.text = without_places(line);
  node.kind = line.substr(0, line.find(' '));
  node.type = type_of(node.text);
  return node;
}

// The node at lines[at], with all below it; `at` is then behind them.
Node tree_at(const std::vector<std::string_view> &lines, size_t &at) {
  const size_t depth = depth_of(lines[at]);
  Node node = node_of(lines[at++]);
  while (at < lines.size() && !lines[at].empty() && depth_of(lines[at]) > depth)
    node.children.push_back(tree_at(lines, at));
  return node;
}

constexpr const char *kZero = "0";

bool is_zero(const Node &node, const std::vector<std::string> &children) {
  const bool has_only_zeros =
      std::ranges::all_of(children, [](const std::string &child) { return child == kZero; });
  if (node.kind == "ImplicitValueInitExpr" || node.kind == "CXXNullPtrLiteralExpr" ||
      node.kind == "GNUNullExpr")
    return true;
  if (node.kind == "IntegerLiteral" || node.kind == "CharacterLiteral")
    return node.text.ends_with(" 0");
  if (node.kind == "FloatingLiteral")
    return node.text.ends_with(" 0.000000e+00");
  if (node.kind == "CXXBoolLiteralExpr")
    return node.text.ends_with(" false");
  if (node.kind == "InitListExpr")
    return has_only_zeros;
  const bool is_cast = node.kind.ends_with("CastExpr") || node.kind == "ParenExpr";
  return is_cast && children.size() == 1 && has_only_zeros;
}

class Writer {
public:
  Writer(const std::vector<std::string> &members, std::set<std::string> types)
      : members_(members), types_(std::move(types)) {}

  RecordList::Values values_of(const Node &list) const {
    RecordList::Values values;
    const size_t count = list.children.size(),
                 bases = count > members_.size() ? count - members_.size() : 0;
    for (size_t i = 0; i < count; i++)
      values[i < bases ? "base " + std::to_string(i) : members_[i - bases]] =
          text_of(list.children[i]);
    return values;
  }

private:
  std::string text_of(const Node &node) const {
    std::vector<std::string> children;
    if (node.kind == "InitListExpr" && types_.contains(node.type)) // another one, within a member
      for (const auto &[name, value] : values_of(node))
        children.push_back(value == kZero ? value : name + "=" + value);
    else
      for (const Node &child : node.children)
        children.push_back(text_of(child));
    if (is_zero(node, children))
      return kZero;
    std::string text = node.text;
    for (const std::string &child : children)
      text += "(" + child + ")";
    return text;
  }

  const std::vector<std::string> &members_;
  std::set<std::string> types_; // the record's names
};

// Children at one place that are parameters: those of `x...`.
bool has_pack(const Node &list) {
  for (size_t i = 1; i < list.children.size(); i++)
    if (const Node &child = list.children[i]; child.place == list.children[i - 1].place)
      for (const Node *below = &child; below;
           below = below->children.empty() ? nullptr : &below->children[0])
        if (below->text.find(" ParmVar ") != std::string::npos)
          return true;
  return false;
}

} // namespace

std::vector<std::string> names_in_dump(std::string_view dump) {
  std::vector<std::string> names;
  for (std::string_view line : lines_of(dump)) {
    if (!line.starts_with("FieldDecl "))
      continue;
    std::string text = without_places(line);
    text.erase(std::min(text.find(" '"), text.size()));
    const std::string name = text.substr(text.rfind(' ') + 1);
    if (std::ranges::find(names, name) != names.end())
      break; // another source includes it, too
    if (name != "FieldDecl" && name != "implicit")
      names.push_back(name);
  }
  return names;
}

std::vector<RecordList> lists_in_dump(std::string_view dump,
                                      const std::vector<std::string> &members) {
  struct Found {
    Range range;
    Node list;
  };
  std::vector<Found> found;
  std::map<std::string, size_t> by_range;
  std::set<std::string> types;
  const std::vector<std::string_view> lines = lines_of(dump);
  for (size_t at = 0; at < lines.size();) {
    if (!lines[at].starts_with("InitListExpr ")) {
      at++;
      continue;
    }
    const Range range = range_of(lines[at]);
    const auto [known, is_new] = by_range.try_emplace(range.whole, found.size());
    if (is_new)
      found.emplace_back();
    Found &each = found[known->second];
    each = {range, tree_at(lines, at)};
    types.insert(each.list.type);
  }
  const Writer writer(members, std::move(types));
  std::vector<RecordList> lists;
  for (const Found &each : found) {
    RecordList list{each.range.line, writer.values_of(each.list)};
    list.calls_in_order = std::ranges::count_if(list.values, [](const auto &value) {
                            return value.second.find("CallExpr") != std::string::npos;
                          }) > 1;
    list.is_pack = has_pack(each.list);
    lists.push_back(std::move(list));
  }
  return lists;
}

} // namespace cli
