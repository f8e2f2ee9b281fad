// "Surely together" comes from alignment: two constant offsets from one base that is a multiple of
// A lie in one block if they lie in the same A bytes, for A up to a block's (places.h). Neighbours
// of which one must be asked about share the question.

#include "compiler/access_groups.h"

#include <tuple>

using namespace llvm;

namespace assay::compiler {

void AccessGroups::add(Instruction &instruction, const Access &access) {
  const Place place = place_of(access, layout_, block_bytes_);
  auto [found, is_new] = open_.insert({place.key(), {.place = place, .pointer = access.pointer}});
  AccessGroup &group = found->second;
  if (place.reach % block_bytes_ == 0) // then its blocks are known best
    group.place = place, group.pointer = access.pointer;
  group.last = &instruction;
  group.order = added_++;
  group.reads += access.reads;
  group.writes += access.writes;
  if (naive_)
    close();
}

void AccessGroups::close() {
  MapVector<Value *, SmallVector<AccessGroup, 4>> by_base;
  for (auto &[key, group] : open_)
    by_base[group.place.base].push_back(group);
  open_.clear();
  for (auto &[base, groups] : by_base) {
    sort(groups, [](const AccessGroup &a, const AccessGroup &b) {
      return std::tie(a.place.first, a.order) < std::tie(b.place.first, b.order);
    });
    for (ArrayRef<AccessGroup> left = groups; !left.empty();) {
      size_t n = neighbours(left);
      clusters_.emplace_back(left.take_front(n));
      left = left.drop_front(n);
    }
  }
}

// How many of the first groups one question serves: do they lie in one block? It is asked where one of
// them must be asked about anyway, and of so few bytes that the answer is mostly yes.
size_t AccessGroups::neighbours(ArrayRef<AccessGroup> groups) const {
  bool asks = false;
  size_t n = 0;
  for (const AccessGroup &group : groups) {
    int64_t bytes = group.place.last - groups[0].place.first + 1;
    if (bytes > (int64_t)block_bytes_ / 2)
      break;
    asks |= group.place.reach != 0;
    n++;
  }
  return asks ? n : 1;
}

} // namespace assay::compiler
