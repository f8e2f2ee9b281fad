// What the members of a struct are given where lists make one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

// A list that makes a record, as the compiler understands it: with members that are not written,
// with braces that were left out, of whatever name for the type, from macros and templates.
struct RecordList {
  using Values = std::map<std::string, std::string>;
  std::string place;           // file:line, or empty if the compiler has none
  Values values;               // by member: expressions, without their places in the source
  bool calls_in_order = false; // functions, for more than one member
  bool is_pack = false;        // members take what a template's pack has, one after the other
};

// The names that clang-query's dump of members tells, in the order of their declarations.
std::vector<std::string> names_in_dump(std::string_view dump);

// The lists in clang-query's dump of initListExpr of one record with these members.
std::vector<RecordList> lists_in_dump(std::string_view dump,
                                      const std::vector<std::string> &members);

} // namespace cli
