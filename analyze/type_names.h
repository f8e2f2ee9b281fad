// Names of C++ types as people write them.
#pragma once

#include <string>
#include <string_view>

namespace analyze {

// std::vector<std::string> of std::vector<std::__cxx11::basic_string<char, std::char_traits<char>,
// std::allocator<char> >, std::allocator<…> >: without the default arguments of the standard
// library's templates and the namespaces of its versions. Also of a name that holds such types, as
// a member's path may. What is not understood stays as it is.
std::string short_type(std::string_view type);

// How many brackets a character of a name opens: 1, 0, or -1 where it closes one. What separates
// the parts of a name does so outside of all brackets.
constexpr int brackets_opened(char c) {
  return (c == '<' || c == '(' || c == '{') - (c == '>' || c == ')' || c == '}');
}

} // namespace analyze
