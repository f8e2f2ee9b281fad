// The regular expressions of options. std::regex is compiled in one file: each that includes it
// takes two seconds longer.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace analyze {

class RegularExpression {
public:
  // Throws Failure for what is no regular expression; the message names the option.
  RegularExpression(const char *option, const std::string &text);
  // Anywhere in the text.
  bool is_found_in(const std::string &text) const;

private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

// --filter: an empty one keeps everything.
class TextFilter {
public:
  // Throws Failure for what is no regular expression.
  explicit TextFilter(const std::string &text);
  bool keeps(const std::string &text) const;
  // As the compiler writes it, or as people do.
  bool keeps_type(const std::string &type) const;

private:
  std::optional<RegularExpression> expression_;
};

} // namespace analyze
