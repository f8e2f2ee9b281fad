// Comparison of profiles. Heap info blocks are C structs without padding, so their bytes are their
// value; the static_asserts hold that.

#include "profile/heap.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace profile {
namespace {

static_assert(std::has_unique_object_representations_v<AssayHib>);
static_assert(std::has_unique_object_representations_v<AssayHibHistograms>);

template <class T> bool same_bytes(const T &a, const T &b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

} // namespace

HeapContext::HeapContext() : freed_histograms(), live_histograms() {
  assay_hib_clear(&freed);
  assay_hib_clear(&live);
}

void Recursion::add(const Recursion &other) {
  if (other.count == 0)
    return;
  if (other.max > max)
    frame = other.frame;
  min = count ? std::min(min, other.min) : other.min;
  max = std::max(max, other.max);
  count += other.count;
  levels += other.levels;
}

bool operator==(const HeapContext &a, const HeapContext &b) {
  return a.stack == b.stack && a.type == b.type && a.origin == b.origin &&
         same_bytes(a.freed, b.freed) && same_bytes(a.live, b.live) &&
         same_bytes(a.freed_histograms, b.freed_histograms) &&
         same_bytes(a.live_histograms, b.live_histograms) && a.peak_bytes == b.peak_bytes &&
         a.at_peak_bytes == b.at_peak_bytes && a.freed_at == b.freed_at &&
         a.recursion == b.recursion;
}

} // namespace profile
