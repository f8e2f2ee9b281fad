// The regular expression of --filter.
#pragma once

#include "base/fail.h"

#include <regex>
#include <string>

namespace analyze {

class TextFilter {
public:
  // Throws Failure for what is no regular expression. An empty one keeps everything.
  explicit TextFilter(const std::string &text) : active_(!text.empty()) {
    try {
      if (active_)
        expression_ = std::regex(text, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error &) {
      base::fail("--filter '{}': it is not a regular expression; escape brackets with a backslash",
                 text);
    }
  }
  bool keeps(const std::string &text) const {
    return !active_ || std::regex_search(text, expression_);
  }

private:
  bool active_;
  std::regex expression_;
};

} // namespace analyze
