// How the tool side says that it cannot go on: one exception type, thrown anywhere, caught once in
// cli/main.cc (exit 2). A message is one sentence of the form "what: where; do this", without a
// prefix and without a full stop.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace base {

class Failure : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

template <class... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments &&...arguments) {
  throw Failure(fmt::format(format, std::forward<Arguments>(arguments)...));
}

} // namespace base
