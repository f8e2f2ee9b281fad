// Names of places for sentences and tables.
//
// The problem: a C++ function's full name, with the types of its result, its parameters and its
// template arguments, fills a terminal and says little more than its last two parts. The idea: cut
// what stands in brackets and what a function returns, keep the class, add file and line. Only
// templates' names say what they return, and these have parameters.

#include "analyze/place.h"

#include "analyze/type_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace analyze {

namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)", kOperator = "operator",
                           kAbiTag = "[abi:", kDecltype = "decltype";

// The longest first.
constexpr std::array<std::string_view, 36> kSigns = {
    "<=>", "<<=", ">>=", "->*", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&",
    "||",  "++",  "--",  "+=",  "-=", "*=", "/=", "%=", "^=", "&=", "|=", "()",
    "[]",  "<",   ">",   "=",   "+",  "-",  "*",  "/",  "%",  "^",  "&",  "|"};

// Where the name of an operator ends that begins here: behind "operator()", "operator<<", "operator new[]",
// "operator unsigned long" (a conversion). 0 if none begins here.
size_t end_of_operator(std::string_view name, size_t at) {
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  const size_t end = at + kOperator.size();
  if (!name.substr(at).starts_with(kOperator) || (at > 0 && is_word(name[at - 1])) ||
      (end < name.size() && is_word(name[end])))
    return 0;
  const std::string_view rest = name.substr(end);
  if (rest.starts_with(' '))
    return std::min(name.find('(', end), name.size());
  // Template arguments may follow it directly: "operator<<int>" is "operator<" of int.
  for (std::string_view sign : kSigns)
    if (rest.starts_with(sign) &&
        (rest.size() == sign.size() ||
         std::string_view("<( ").find(rest[sign.size()]) != std::string_view::npos))
      return end + sign.size();
  return std::min(name.find_first_of("<(", end), name.size()); // ! ~ , and what is none
}

// Of a function, which stand behind its parameters.
size_t end_of_qualifiers(std::string_view name, size_t at) {
  constexpr std::array<std::string_view, 4> kQualifiers = {" const", " volatile", " &&", " &"};
  for (bool any = true; any;) {
    any = false;
    for (std::string_view qualifier : kQualifiers)
      if (name.substr(at).starts_with(qualifier)) {
        at += qualifier.size();
        any = true;
      }
  }
  return at;
}

} // namespace

std::string short_name(const std::string &function) {
  if (function.starts_with('['))
    return function;
  const std::string_view name = function;
  std::string kept;
  int depth = 0;    // of brackets
  size_t begin = 0; // of what was kept, behind the type that a function returns
  bool has_parameters =
      false; // then " const" follows, or " [clone .cold]", or "::" and what is local to the function
  for (size_t at = 0; at < name.size(); at++) {
    const std::string_view rest = name.substr(at);
    const char c = rest.front();
    if (depth > 0) {
      depth += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
    } else if (const size_t end = end_of_operator(name, at)) {
      kept += name.substr(at, end - at);
      at = name.substr(end).starts_with(" <") ? end : end - 1;
    } else if (rest.starts_with(kAnonymous)) {
      kept += kAnonymous;
      at += kAnonymous.size() - 1;
    } else if (rest.starts_with(kAbiTag)) {
      at = std::min(name.find(']', at), name.size() - 1);
    } else if (c == '<' || c == '(') {
      depth = 1;
      has_parameters |= c == '(' && !kept.ends_with(kDecltype);
    } else if (c == ' ' && has_parameters) {
      at = end_of_qualifiers(name, at);
      const std::string_view behind = name.substr(at);
      if (behind.starts_with(" (.") || behind.starts_with(" [clone")) // a part of it: .cold
        kept += behind;
      if (!behind.starts_with("::"))
        break;
      at--;
    } else {
      kept += c;
      if (c == ' ' && !has_parameters)
        begin = kept.size();
    }
  }
  if (has_parameters) // else the spaces are those of "0x10 in libc.so.6"
    kept.erase(0, begin);
  return kept.empty() ? function : short_type(kept);
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
  for (size_t at; (at = name.find(kAnonymous)) != std::string::npos;)
    name.erase(at, name.compare(at + kAnonymous.size(), 2, "::") == 0 ? kAnonymous.size() + 2
                                                                      : kAnonymous.size());
  size_t last = name.rfind("::");
  size_t before = last == std::string::npos || last == 0 ? last : name.rfind("::", last - 1);
  if (before != std::string::npos && name.find("lambda") == std::string::npos)
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
