// Values are added before the object or list that holds them, which then holds references. So the
// text of a node is short however much lies below it, and what is equal has equal texts: one
// look-up of the text finds a frame, or a whole call stack, that was kept before.
//
// Refused: to remember every text. Long ones hardly come again, and to remember them would double
// the memory that a page needs.

#include "report/node_table.h"

namespace report {
namespace {

std::string joined(const std::vector<std::string> &values) {
  std::string text = "[";
  for (const std::string &value : values) {
    if (text.size() > 1)
      text += ',';
    text += value;
  }
  return text + "]";
}

std::string reference(long table, size_t row) {
  return "[" + std::to_string(table) + "," + std::to_string(row) + "]";
}

constexpr long kLists = -1;

// Only a few hundred bytes come again often; to remember longer texts would double what the page needs.
constexpr size_t kMaxKnownText = 4096;

} // namespace

std::string_view NodeTable::Node::value(size_t index) const {
  const size_t begin = index ? ends[index - 1] + 1 : values + 1; // behind a comma, or the bracket
  return std::string_view(text).substr(begin, ends[index] - begin);
}

void NodeTable::append_values(const Json &json, Node &node) {
  node.text.clear();
  node.ends.clear();
  if (json.is_object()) {
    node.text += '{';
    for (const auto &[key, value] : json.items())
      (node.text += key) += '\0';
  }
  node.values = node.text.size();
  node.text += '[';
  for (const Json &value : json) {
    if (!node.ends.empty())
      node.text += ',';
    append(value, true, node.text);
    node.ends.push_back(node.text.size());
  }
  node.text += ']';
}

void NodeTable::append(const Json &json, bool may_be_known, std::string &to) {
  if (!json.is_structured()) {
    to += printer_.print(json);
    return;
  }
  if (depth_ == nodes_.size())
    nodes_.emplace_back();
  Node &node = nodes_[depth_++];
  append_values(json, node);
  depth_--;
  may_be_known &= node.text.size() <= kMaxKnownText;
  if (may_be_known)
    if (auto found = known_.find(node.text); found != known_.end()) {
      to += found->second;
      return;
    }
  std::string added;
  if (json.is_object()) {
    std::vector<std::string> keys;
    for (const auto &[key, value] : json.items())
      keys.push_back(json_text(key));
    added = add_row(table_of(keys), node);
  } else {
    lists_.push_back(node.text);
    added = reference(kLists, lists_.size() - 1);
  }
  to += added;
  if (may_be_known)
    known_.emplace(node.text, std::move(added));
}

std::string NodeTable::add(const Json &json, bool may_be_known) {
  std::string added;
  append(json, may_be_known, added);
  return added;
}

std::string NodeTable::add_list(const std::vector<std::string> &values) {
  lists_.push_back(joined(values));
  return reference(kLists, lists_.size() - 1);
}

std::string NodeTable::add_object(const std::vector<std::string> &keys,
                                  const std::vector<std::string> &values) {
  std::vector<std::string> texts;
  for (const std::string &key : keys)
    texts.push_back(json_text(key));
  const size_t table = table_of(texts);
  for (size_t column = 0; column < values.size(); column++)
    tables_[table].columns[column].push_back(values[column]);
  return reference((long)table, tables_[table].rows++);
}

std::string NodeTable::add_row(size_t table, const Node &node) {
  Table &of = tables_[table];
  for (size_t column = 0; column < of.columns.size(); column++)
    of.columns[column].emplace_back(node.value(column));
  return reference((long)table, of.rows++);
}

size_t NodeTable::table_of(const std::vector<std::string> &keys) {
  auto [found, is_new] = table_of_keys_.emplace(joined(keys), tables_.size());
  if (is_new)
    tables_.push_back({found->first, std::vector<std::vector<std::string>>(keys.size()), 0});
  return found->second;
}

std::string NodeTable::text(std::string_view root) const {
  std::string text = "{\"root\":" + std::string(root) + ",\"tables\":[";
  for (size_t table = 0; table < tables_.size(); table++) {
    text += table ? ",\n" : "";
    text += "{\"keys\":" + tables_[table].keys + ",\"columns\":[";
    for (size_t column = 0; column < tables_[table].columns.size(); column++)
      text += (column ? "," : "") + joined(tables_[table].columns[column]);
    text += "]}";
  }
  return text + "],\n\"lists\":" + joined(lists_) + "}";
}

} // namespace report
