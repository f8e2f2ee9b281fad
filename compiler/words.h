// Lists with commas, as the values of flags are.
#pragma once

#include <algorithm>
#include <string_view>

namespace assay::compiler {

// Calls f(word) for each word of the list.
template <typename F> void each_word(std::string_view list, F f) {
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    f(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

} // namespace assay::compiler
