// The linker takes a long option with one dash or two, and its value behind a = or as the next
// word, also where that is in the next argument of the compiler: so all words are gathered before
// any of them is understood.

#include "compiler/linker_words.h"

#include "compiler/words.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>

namespace assay::compiler {
namespace {

// Of archives, separated by commas or colons.
bool names_runtime(const std::string &archives) {
  return std::regex_search(archives, std::regex("(^|[,:])(ALL|libassay_rt[a-z_]*\\.a)($|[,:])"));
}

bool has_local_symbols(const std::string &script) {
  std::ifstream file(script);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string bare =
      std::regex_replace(text, std::regex("/\\*[^*]*\\*+([^/*][^*]*\\*+)*/|#[^\n]*"), " ");
  return std::regex_search(bare, std::regex("\\blocal\\s*:"));
}

} // namespace

void LinkerWords::read(std::string_view argument, std::string_view next) {
  if (argument == "-Xlinker")
    words_.emplace_back(next);
  if (argument.starts_with("-Wl,"))
    each_word(argument.substr(4), [&](std::string_view word) { words_.emplace_back(word); });
}

bool LinkerWords::relinks() const {
  return std::ranges::find(words_, "-r") != words_.end();
}

bool LinkerWords::names_archive() const {
  return std::ranges::any_of(
      words_, [](const std::string &word) { return word.find(".a") != std::string::npos; });
}

bool LinkerWords::hides_runtime() const {
  for (size_t i = 0; i < words_.size(); i++) {
    const std::string &word = words_[i];
    const size_t begin = word.find_first_not_of('-'), equals = word.find('=');
    if (begin == std::string::npos || begin < 1 || begin > 2)
      continue;
    const std::string option =
        word.substr(begin, equals == std::string::npos ? equals : equals - begin);
    const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                              : i + 1 < words_.size()     ? words_[i + 1]
                                                          : "";
    if ((option == "exclude-libs" && names_runtime(value)) ||
        (option == "version-script" && has_local_symbols(value)))
      return true;
  }
  return false;
}

} // namespace assay::compiler
