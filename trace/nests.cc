// The last accesses and loops are held. Where the last three stretches of so many of them are
// alike, and each address goes up from the first to the second by as much as from the second to the
// third, they are a loop of three iterations; where a loop is followed by what its next iteration
// would be, it has one more. A loop that has ended is one thing, of which the loop around it has as
// many as it has iterations.

#include "trace/nests.h"

#include <algorithm>
#include <cstddef>

namespace trace {
namespace {

constexpr size_t kMaxBody = 160, kMaxHeld = 4 * kMaxBody;

// Calls f with each access of a nest, in order.
template <class F> void each_access(const Nest &nest, F &&f) {
  if (!nest.is_loop()) {
    f(nest);
    return;
  }
  for (const Nest &part : nest.body)
    each_access(part, f);
}

// The same but for where it is.
bool is_alike(const Nest &a, const Nest &b) {
  if (a.count != b.count || a.site != b.site || a.size != b.size || a.kind != b.kind ||
      a.body.size() != b.body.size() || a.strides != b.strides)
    return false;
  return std::equal(a.body.begin(), a.body.end(), b.body.begin(), is_alike);
}

// Of what is_alike() compares.
uint64_t shape_of(const Nest &nest) {
  uint64_t shape = 0;
  const auto add = [&shape](uint64_t more) {
    shape = (shape ^ more) * 0x9e3779b97f4a7c15;
    shape ^= shape >> 32;
  };
  add(nest.site);
  add(nest.size);
  add(static_cast<uint64_t>(nest.kind));
  add(nest.count);
  for (const Nest &part : nest.body)
    add(shape_of(part));
  for (const int64_t stride : nest.strides)
    add(static_cast<uint64_t>(stride));
  return shape;
}

// How far each access of `to` is beyond that of `from`; the same number of parts, alike.
std::vector<int64_t> distances(const Nest *from, const Nest *to, size_t parts) {
  std::vector<int64_t> result;
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < parts; i++)
    each_access(from[i], [&](const Nest &access) { addresses.push_back(access.address); });
  for (size_t i = 0; i < parts; i++)
    each_access(to[i], [&](const Nest &access) {
      result.push_back(static_cast<int64_t>(access.address - addresses[result.size()]));
    });
  return result;
}

} // namespace

void NestFolder::hold(Nest nest) {
  shapes_.push_back(shape_of(nest));
  body_sizes_.push_back(static_cast<uint32_t>(nest.body.size()));
  held_.push_back(std::move(nest));
}

void NestFolder::drop(size_t from) {
  held_.resize(from);
  shapes_.resize(from);
  body_sizes_.resize(from);
}

void NestFolder::push(Nest access) {
  hold(std::move(access));
  while (grow() || fold())
    ;
  if (held_.size() < kMaxHeld)
    return;
  const auto gone = static_cast<std::ptrdiff_t>(held_.size() / 2);
  for (std::ptrdiff_t i = 0; i < gone; i++)
    take_(held_[static_cast<size_t>(i)]);
  held_.erase(held_.begin(), held_.begin() + gone);
  shapes_.erase(shapes_.begin(), shapes_.begin() + gone);
  body_sizes_.erase(body_sizes_.begin(), body_sizes_.begin() + gone);
}

void NestFolder::flush() {
  for (const Nest &each : held_)
    take_(each);
  drop(0);
}

// A loop takes what follows it for its next iteration.
bool NestFolder::grow() {
  const size_t count = held_.size();
  for (size_t parts = 1; parts <= kMaxBody && parts < count; parts++) {
    if (body_sizes_[count - parts - 1] != parts)
      continue;
    Nest &loop = held_[count - parts - 1];
    const Nest *next = &held_[count - parts];
    if (!std::equal(loop.body.begin(), loop.body.end(), next, is_alike))
      continue;
    const std::vector<int64_t> far = distances(loop.body.data(), next, parts);
    bool fits = true;
    for (size_t i = 0; i < far.size(); i++)
      fits &= static_cast<uint64_t>(far[i]) == static_cast<uint64_t>(loop.strides[i]) * loop.count;
    if (!fits)
      continue;
    loop.count++;
    shapes_[count - parts - 1] = shape_of(loop);
    drop(count - parts);
    return true;
  }
  return false;
}

// Three stretches become a loop.
bool NestFolder::fold() {
  const size_t count = held_.size();
  for (size_t parts = 1; parts <= kMaxBody && 3 * parts <= count; parts++) {
    if (shapes_[count - 1] != shapes_[count - 1 - parts])
      continue;
    const Nest *third = &held_[count - parts], *second = third - parts, *first = second - parts;
    if (!std::equal(first, second, second, is_alike) || !std::equal(second, third, third, is_alike))
      continue;
    std::vector<int64_t> strides = distances(first, second, parts);
    if (strides != distances(second, third, parts))
      continue;
    Nest loop;
    loop.count = 3;
    loop.body.assign(first, second);
    loop.strides = std::move(strides);
    drop(count - 3 * parts);
    hold(std::move(loop));
    return true;
  }
  return false;
}

} // namespace trace
