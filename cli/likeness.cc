// The edit distance of words.
//
// Source: Wagner and Fischer, The string-to-string correction problem, 1974; one row of the table at a
// time. Keyboards and sounds are not modelled: the lists that are searched are short or exact enough.

#include "cli/likeness.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace cli {

size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); i++) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); j++) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

} // namespace cli
