#include "compiler/response_file.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <stdexcept>

namespace assay::compiler {
namespace {

// `around` are files that name it.
std::vector<std::string> words_within(const std::string &path, std::vector<std::string> around) {
  if (std::find(around.begin(), around.end(), path) != around.end())
    throw std::runtime_error("@" + path + ": this response file contains itself");
  around.push_back(path);
  std::ifstream in(path);
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (char c; in.get(c);) {
    if (c == '\\' && in.get(c)) {
      word += c, inside = true;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c, inside = true;
    } else if (isspace((unsigned char)c)) {
      if (inside)
        words.push_back(word);
      word.clear(), inside = false;
    } else {
      word += c, inside = true;
    }
  }
  if (inside)
    words.push_back(word);
  std::vector<std::string> all;
  for (std::string &each : words) {
    if (!names_response_file(each) || !std::ifstream(each.substr(1))) {
      all.push_back(std::move(each));
      continue;
    }
    std::vector<std::string> more = words_within(each.substr(1), around);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

} // namespace

std::vector<std::string> words_of_response_file(const std::string &path) {
  return words_within(path, {});
}

} // namespace assay::compiler
