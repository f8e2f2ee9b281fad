// What things of one name have in two runs. What only one run has is zeros in the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace analyze {

template <class S> struct NamedChange {
  using Side = S; // equality-comparable
  std::string name;
  Side old_side, new_side;
};

struct AccessCounts {
  uint64_t reads = 0, writes = 0;
  uint64_t accesses() const { return reads + writes; }
  friend bool operator==(const AccessCounts &, const AccessCounts &) = default;
};
using AccessChange = NamedChange<AccessCounts>;

inline uint64_t apart(uint64_t a, uint64_t b) {
  return std::max(a, b) - std::min(a, b);
}

template <class Change> using ChangesByName = std::map<std::string, Change>;

// The side of a name to add to.
template <class Change>
typename Change::Side &side_of(ChangesByName<Change> &changes, const std::string &name,
                               typename Change::Side Change::*side) {
  Change &change = changes[name];
  change.name = name;
  return change.*side;
}

// Those that `same` does not hold of, by name.
template <class Change, class Same>
std::vector<Change> differing(const ChangesByName<Change> &changes, Same same) {
  std::vector<Change> result;
  for (const auto &[name, change] : changes)
    if (!same(change))
      result.push_back(change);
  return result;
}

} // namespace analyze
