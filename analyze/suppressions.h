// Leaks that somebody knows of, in the syntax of LeakSanitizer's suppression files: a line
// `leak:PATTERN`, empty lines, and comments that begin with `#`.
//
// A pattern is looked for anywhere in a function's name (demangled, with parameters; or mangled),
// its source file or its module; `*` stands for any characters, `^` at its begin and `$` at its end
// bind it to the name's. It suppresses a context if it matches any frame.
//
// Source: AddressSanitizerLeakSanitizer wiki of google/sanitizers, "Suppressions";
// compiler-rt/lib/sanitizer_common/sanitizer_common.cpp, TemplateMatch.
#pragma once

#include "image/frame.h"

#include <string>
#include <string_view>
#include <vector>

namespace analyze {

class Suppressions {
public:
  Suppressions() = default;

  // `source` names the text in messages. Throws Failure with the first line that is not understood.
  Suppressions(std::string_view text, const std::string &source);

  // Remembers which patterns matched.
  bool match(const image::CallStack &frames);

  size_t patterns() const { return patterns_.size(); }
  size_t patterns_used() const;

private:
  struct Pattern {
    std::string text;
    bool used = false;
  };
  std::vector<Pattern> patterns_;
};

// From a file. Throws Failure also when it cannot be read.
Suppressions read_suppressions(const std::string &path);

// Whether the pattern, without its `leak:`, matches a name.
bool suppression_matches(std::string_view pattern, std::string_view name);

} // namespace analyze
