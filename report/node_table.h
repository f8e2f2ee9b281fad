// A JSON document as tables, as an HTML page holds it: each object with the same keys is a row of one table, kept
// by columns, and what comes again (frames, call stacks) is kept once.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/json.h"

namespace report {

// Values are texts of JSON: of a number, string, true, false or null its own; of an object `[table,
// row]`, of a list `[-1, row]`. Lists of JSON never stand for themselves, so the two cannot be
// taken for each other.
class NodeTable {
public:
  // The text that stands for `json`; what has the same text already is not kept again.
  std::string add(const Json &json) { return add(json, true); }
  // The same for a value that comes once: it is not looked for.
  std::string add_new(const Json &json) { return add(json, false); }
  // A list of values that were added.
  std::string add_list(const std::vector<std::string> &values);
  // An object of values that were added.
  std::string add_object(const std::vector<std::string> &keys,
                         const std::vector<std::string> &values);

  // {"root": VALUE, "tables": [{"keys": […], "columns": [[VALUE…]…]}…], "lists": [[VALUE…]…]}
  std::string text(std::string_view root) const;

private:
  struct Table {
    std::string keys; // as a list of JSON
    std::vector<std::vector<std::string>> columns;
    size_t rows = 0;
  };

  // An object or a list whose values are being added.
  struct Node {
    std::string
        text; // equal for equal ones: what its values stand for, behind the keys of an object
    size_t values = 0;        // where they begin in it
    std::vector<size_t> ends; // of each value

    std::string_view value(size_t index) const;
  };

  std::string add(const Json &json, bool may_be_known);
  // Appends what stands for it to the text.
  void append(const Json &json, bool may_be_known, std::string &to);
  void append_values(const Json &json, Node &node);
  std::string add_row(size_t table, const Node &node);
  size_t table_of(const std::vector<std::string> &keys);

  std::vector<Table> tables_;
  std::vector<std::string> lists_;
  std::unordered_map<std::string, size_t> table_of_keys_;
  std::unordered_map<std::string, std::string> known_;
  std::deque<Node> nodes_; // by depth; used again
  size_t depth_ = 0;
  JsonPrinter printer_;
};

} // namespace report
