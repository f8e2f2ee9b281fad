#include "analyze/regular_expression.h"

#include "analyze/type_names.h"
#include "base/fail.h"

#include <regex>

namespace analyze {

struct RegularExpression::Compiled {
  std::regex expression;
};

RegularExpression::RegularExpression(const char *option, const std::string &text) {
  try {
    compiled_ = std::make_shared<Compiled>(
        Compiled{std::regex(text, std::regex::ECMAScript | std::regex::optimize)});
  } catch (const std::regex_error &) {
    base::fail("{} '{}': it is not a regular expression; escape brackets with a backslash", option,
               text);
  }
}

bool RegularExpression::is_found_in(const std::string &text) const {
  return std::regex_search(text, compiled_->expression);
}

TextFilter::TextFilter(const std::string &text) {
  if (!text.empty())
    expression_.emplace("--filter", text);
}

bool TextFilter::keeps_type(const std::string &type) const {
  return keeps(type) || keeps(short_type(type));
}

bool TextFilter::keeps(const std::string &text) const {
  return !expression_ || expression_->is_found_in(text);
}

} // namespace analyze
