// Names of places for sentences and tables.
//
// The problem: a C++ function's full name, with the types of its parameters and template arguments,
// fills a terminal and says little more than its last two parts. The idea: cut what stands in
// brackets, keep the class, add file and line. Names that are made of brackets themselves
// (operators, lambdas) are left whole: cutting them right needs a parser of C++ names.

#include "analyze/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace analyze {

std::string short_name(const std::string &function) {
  // "operator<", "operator()" and lambdas are names that contain brackets: left whole.
  if (function.find("operator") != std::string::npos ||
      function.find("lambda") != std::string::npos || function.starts_with("("))
    return function;
  std::string name;
  int depth = 0;
  for (size_t at = 0; at < function.size(); at++) {
    char c = function[at];
    bool anonymous = function.compare(at, 11, "(anonymous ") == 0;
    if (anonymous && depth == 0) {
      size_t end = std::min(function.find(')', at), function.size() - 1);
      name += function.substr(at, end - at + 1);
      at = end;
    } else if (c == '<' || c == '(') {
      depth++;
    } else if (c == '>' || c == ')') {
      depth -= depth > 0;
    } else if (depth == 0) {
      name += c;
    }
  }
  if (name.ends_with(" const"))
    name.resize(name.size() - 6);
  return name.empty() ? function : name;
}

namespace {

std::string with_line(std::string function, const image::Frame &frame) {
  if (frame.file.empty())
    return function;
  std::string file = image::base_name(frame.file);
  // Line 0: the compiler made the code of no single line.
  return frame.line ? fmt::format("{} at {}:{}", function, file, frame.line)
                    : fmt::format("{} in {}", function, file);
}

} // namespace

std::string place(const image::Frame &frame) {
  return with_line(short_name(frame.function), frame);
}

std::string short_place(const std::string &name) {
  size_t at = name.rfind(" at ");
  return at == std::string::npos ? name : short_name(name.substr(0, at)) + name.substr(at);
}

std::string brief_place(const image::Frame &frame) {
  std::string name = short_name(frame.function);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t at; (at = name.find(kAnonymous)) != std::string::npos;)
    name.erase(at, kAnonymous.size());
  size_t last = name.rfind("::");
  size_t before = last == std::string::npos || last == 0 ? last : name.rfind("::", last - 1);
  if (before != std::string::npos && name.find("operator") == std::string::npos &&
      name.find("lambda") == std::string::npos)
    name.erase(0, before + 2);
  return with_line(std::move(name), frame);
}

bool is_of_standard_library(const std::string &type) {
  return type.starts_with("std::") || type.starts_with("__gnu_cxx::");
}

bool is_linked_by_library(const std::string &type) {
  return is_of_standard_library(type) && (type.find("_Rb_tree_node") != std::string::npos ||
                                          type.find("_List_node") != std::string::npos);
}

std::string how_to_lay_out(const std::string &type) {
  const bool is_library = is_of_standard_library(type);
  if (is_library &&
      (type.find("_node") != std::string::npos || type.find("_Node") != std::string::npos))
    return "use a container whose elements lie side by side (a sorted vector, a flat hash table): "
           "this one's nodes are laid out by the library";
  if (is_library || type.empty() || is_scalar(type))
    return "keep what is used of them together; allocate only as much, if nobody but counted code "
           "uses the rest";
  return "put the members that are used next to each other; allocate only those, if nobody but "
         "counted code uses the others";
}

} // namespace analyze
