// Sums, cells and runs are compared as bytes. That is right only as long as their structs have no
// padding, which is asserted.
//
// Runs of several processes may overlap in any way. add_up() takes each as two changes of the
// hotness, up where it begins and down where it ends, sorts them by offset, and adds them up; where
// the changes at an offset cancel, neighbours become one run. So time and memory grow with the
// runs, not with the words that they cover.

#include "profile/objects.h"

#include "abi/word_encoding.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>

namespace profile {
namespace {

static_assert(std::has_unique_object_representations_v<AssayObjectSums>);
static_assert(std::has_unique_object_representations_v<AssayWordCell>);
static_assert(std::has_unique_object_representations_v<AssayWordRun>);

template <class T> bool same_bytes(const T &a, const T &b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T> bool same_bytes(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

void add_cells(std::vector<AssayWordCell> &into, const std::vector<AssayWordCell> &more) {
  into.resize(std::max(into.size(), more.size()));
  for (size_t i = 0; i < more.size(); i++) {
    into[i].hotness += more[i].hotness;
    into[i].accessed += more[i].accessed;
    into[i].again += more[i].again;
  }
}

} // namespace

void ObjectGroup::add(const ObjectGroup &other) {
  assay_object_sums_add(&sums, &other.sums);
  add_cells(positions, other.positions);
  add_cells(cells, other.cells);
}

uint64_t ObjectGroup::unit_bytes() const {
  return object_unit_bytes(encoding);
}

bool operator==(const ObjectGroup &a, const ObjectGroup &b) {
  return a.key() == b.key() && same_bytes(a.sums, b.sums) && same_bytes(a.positions, b.positions) &&
         same_bytes(a.cells, b.cells);
}

bool operator==(const ObjectGlobals &a, const ObjectGlobals &b) {
  return a.module == b.module && a.encoding == b.encoding && same_bytes(a.runs, b.runs);
}

uint64_t object_unit_bytes(uint32_t encoding) {
  return assay_word_encoding(encoding).unit_bytes;
}

void add_up(std::vector<AssayWordRun> &runs, uint64_t unit_bytes) {
  std::map<uint64_t, uint64_t> changes; // of the hotness, by offset
  for (const AssayWordRun &run : runs) {
    changes[run.offset] += run.hotness;
    changes[run.offset + run.units * unit_bytes] -= run.hotness;
  }
  runs.clear();
  uint64_t hotness = 0, begin = 0;
  for (auto [offset, change] : changes) {
    if (change == 0)
      continue;
    if (hotness && offset > begin)
      runs.push_back({begin, (offset - begin) / unit_bytes, hotness});
    begin = offset;
    hotness += change;
  }
}

} // namespace profile
