// Lists as people type them: "results,loads".
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace base {

// What lies between the commas, empty words as well: "" is one empty word. The words point into `text`.
inline std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

} // namespace base
