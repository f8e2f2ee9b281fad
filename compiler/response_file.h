// Files of arguments: @FILE on a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::compiler {

inline bool names_response_file(std::string_view argument) {
  return argument.size() > 1 && argument[0] == '@';
}

// The words of a response file and of those in it, quotes and backslashes as clang reads them; none
// if it cannot be read, and what it names that cannot be is a word. Throws std::runtime_error with
// a sentence if one contains itself.
std::vector<std::string> words_of_response_file(const std::string &path);

} // namespace assay::compiler
