// A sort that keeps the order of equals. std::stable_sort of libstdc++ 12 uses a function that
// clang warns of as deprecated, and warnings are errors here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace base {

template <class T, class Less> void stable_sort(std::vector<T> &items, Less less) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (less(items[a], items[b]))
      return true;
    return !less(items[b], items[a]) && a < b;
  });
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (size_t index : order)
    sorted.push_back(std::move(items[index]));
  items = std::move(sorted);
}

} // namespace base
