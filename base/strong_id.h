// Numbers that name things. Id<Tag> is an index that cannot be mixed up with another kind of index,
// a count or a size; the tag is an incomplete struct named for the thing.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace base {

template <class Tag> struct Id {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t v = kNone; // kNone: names nothing

  constexpr bool known() const { return v != kNone; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

} // namespace base

template <class Tag> struct std::hash<base::Id<Tag>> {
  size_t operator()(base::Id<Tag> id) const noexcept { return std::hash<uint32_t>()(id.v); }
};
