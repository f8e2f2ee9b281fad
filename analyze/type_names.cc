// Compilers spell one type in several ways (with and without default arguments, "> >"): what is
// joined by type compares these names.

#include "analyze/type_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

namespace analyze {
namespace {

constexpr std::array<std::string_view, 2> kVersions = {"__cxx11::", "__1::"};
constexpr std::array<std::string_view, 7> kDefaults = {
    "std::allocator", "std::char_traits",    "std::less",        "std::hash",
    "std::equal_to",  "std::default_delete", "std::regex_traits"};
// Their last arguments are no defaults.
constexpr std::array<std::string_view, 4> kWhole = {"std::pair", "std::tuple", "std::variant",
                                                    "std::function"};
// Of a key and a value.
constexpr std::array<std::string_view, 4> kMaps = {"std::map", "std::multimap",
                                                   "std::unordered_map", "std::unordered_multimap"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kAliases = {
    {{"std::basic_string<char>", "std::string"},
     {"std::basic_string<wchar_t>", "std::wstring"},
     {"std::basic_string_view<char>", "std::string_view"},
     {"std::basic_string_view<wchar_t>", "std::wstring_view"}}};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

// The arguments behind a '<', and what follows their '>'; none if there is no such '>'.
struct Arguments {
  std::vector<std::string_view> list;
  std::string_view rest;
};
bool read_arguments(std::string_view text, Arguments &to) {
  std::string open; // brackets that wait to be closed
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); at++) {
    const char c = text[at];
    if (c == '<' || c == '(' || c == '[' || c == '{') {
      open += c;
    } else if (c == '>' && open.empty()) {
      to.list.push_back(trimmed(text.substr(begin, at - begin)));
      to.rest = text.substr(at + 1);
      return true;
    } else if (c == '>' || c == ')' || c == ']' || c == '}') {
      if (open.empty() ||
          std::string_view("<([{").find(open.back()) != std::string_view(">)]}").find(c))
        return false;
      open.pop_back();
    } else if (c == ',' && open.empty()) {
      to.list.push_back(trimmed(text.substr(begin, at - begin)));
      begin = at + 1;
    }
  }
  return false;
}

// Whether the last argument is the default for those before it: std::less<KEY>,
// std::allocator<std::pair<KEY const, VALUE>>.
bool ends_in_default(std::string_view name, const std::vector<std::string> &arguments) {
  const size_t needed = std::ranges::find(kMaps, name) != kMaps.end() ? 2 : 1;
  if (arguments.size() <= needed || !name.starts_with("std::") ||
      std::ranges::find(kWhole, name) != kWhole.end())
    return false;
  const std::string &first = arguments.front();
  std::vector<std::string> elements = {first};
  if (arguments.size() > 2)
    elements.insert(elements.end(), {"std::pair<" + first + " const, " + arguments[1] + ">",
                                     "std::pair<const " + first + ", " + arguments[1] + ">",
                                     arguments[1]}); // of a tree, whose second is what it holds
  return std::ranges::any_of(kDefaults, [&](std::string_view each) {
    return std::ranges::any_of(elements, [&](const std::string &element) {
      return arguments.back() == std::string(each) + "<" + element + ">";
    });
  });
}

std::string without_versions(std::string_view type) {
  std::string text(type);
  for (std::string_view version : kVersions)
    for (size_t at = 0; (at = text.find("std::" + std::string(version), at)) != std::string::npos;)
      text.erase(at + 5, version.size());
  return text;
}

// False: it is no type that this reads, or it is as deep as no program's.
bool shorten(std::string_view type, std::string &to, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 100;
  while (!type.empty()) {
    const char c = type.front();
    type.remove_prefix(1);
    if (c == '>')
      return false;
    if (c != '<') {
      to += c;
      continue;
    }
    Arguments arguments;
    if (depth == kMaxDepth || to.empty() || !is_name_character(to.back()) ||
        !read_arguments(type, arguments))
      return false;
    const auto name_begin = std::find_if_not(to.rbegin(), to.rend(), is_name_character).base();
    const size_t name_at = static_cast<size_t>(name_begin - to.begin());
    const std::string name = to.substr(name_at);
    std::vector<std::string> kept;
    for (std::string_view argument : arguments.list)
      if (!shorten(argument, kept.emplace_back(), depth + 1))
        return false;
    while (ends_in_default(name, kept))
      kept.pop_back();
    to += '<';
    for (size_t i = 0; i < kept.size(); i++)
      to += (i ? ", " : "") + kept[i];
    to += '>';
    for (const auto &[whole, alias] : kAliases)
      if (std::string_view(to).substr(name_at) == whole)
        to.replace(name_at, std::string::npos, alias);
    type = arguments.rest;
  }
  return true;
}

} // namespace

std::string short_type(std::string_view type) {
  std::string text;
  if (type.find('<') == std::string_view::npos || type.find("operator") != std::string_view::npos ||
      !shorten(without_versions(type), text))
    return without_versions(type);
  return text;
}

} // namespace analyze
