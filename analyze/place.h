// What places in code are called in sentences and tables.
#pragma once

#include "analyze/frame.h"

#include <string>

namespace analyze {

// "function at file:line" of the owner, for a sentence; the function without parameters and
// template arguments.
std::string place(const image::Frame &frame);

// The same with no more than the class before the function's name, for tables.
std::string brief_place(const image::Frame &frame);

// "function at file:line" with the whole of the function's name, as place() says it; other names as they are.
std::string short_place(const std::string &name);

// What to do about objects of the type whose lines are badly used: a struct has members to move, a
// buffer has none, and the nodes of a container are the library's.
std::string how_to_lay_out(const std::string &type);

// Whether a type's members are declared by the standard library, where no user can move them.
bool is_of_standard_library(const std::string &type);
// Whether the library's own code, which is not counted, uses members of the type: the links of the
// nodes of std::map, std::set and std::list.
bool is_linked_by_library(const std::string &type);

// A C++ function's name without what stands in (balanced) angle brackets and parentheses, and
// without the type that it returns: "std::vector::push_back" of "void std::vector<int,
// …>::push_back<…>(int&&)". Operators and lambdas keep their signs: "A::operator()",
// "f()::{lambda(int)#1}" is "f::{lambda#1}".
std::string short_name(const std::string &function);

} // namespace analyze
