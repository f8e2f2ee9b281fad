// A trace has millions of accesses, and each changes the sums of its thread, the sums of its
// instruction, and the footprint. So a batch is cut into pieces that stay in the first-level cache,
// and each of the three has a simple pass over the piece. Sums of instructions are a vector by
// site, because sites are numbered without gaps. Refused: passes over the whole batch, which is
// larger than that cache.
//
// Of a loop each access of the body is counted once, times the iterations; which lines the iterations touch is left to
// Footprint::touch_run().

#include "analyze/access_counts.h"

#include <algorithm>

namespace analyze {

// In pieces that stay in the first-level cache, so that each pass over them can be a simple one.
void AccessCounts::accesses(const profile::AccessOrigin &origin,
                            std::span<const profile::Access> batch) {
  constexpr size_t kPiece = 512;
  const uint64_t space = spaces_.of(origin.process);
  AccessSums sums;
  for (; !batch.empty(); batch = batch.subspan(std::min(kPiece, batch.size())))
    count(batch.first(std::min(kPiece, batch.size())), space, sums);
  of_thread_[{origin.process, origin.thread}] += sums;
}

void AccessCounts::count(std::span<const profile::Access> piece, uint64_t space,
                         AccessSums &of_all) {
  uint32_t last_site = 0;
  uint64_t writes = 0, bytes = 0;
  for (const profile::Access &each : piece) {
    last_site = std::max(last_site, each.site);
    writes += each.is_write;
    bytes += each.size;
  }
  of_all.count[0] += piece.size() - writes;
  of_all.count[1] += writes;
  of_all.bytes += bytes;
  if (last_site >= of_site_.size())
    of_site_.resize(last_site + size_t{1});
  AccessSums *const of_site = of_site_.data();
  for (const profile::Access &each : piece) {
    of_site[each.site].count[each.is_write]++;
    of_site[each.site].bytes += each.size;
  }
  // Nothing accesses 0 bytes, but what a damaged file says.
  for (const profile::Access &each : piece)
    footprint_.touch(each.address + space, std::max<uint16_t>(each.size, 1), each.is_write);
}

void AccessCounts::loop(const profile::AccessOrigin &origin,
                        std::span<const profile::AccessRun> body, uint64_t times) {
  const uint64_t space = spaces_.of(origin.process);
  AccessSums &of_thread = of_thread_[{origin.process, origin.thread}];
  for (const auto &[first, step] : body) {
    if (first.site >= of_site_.size())
      of_site_.resize(first.site + size_t{1});
    AccessSums sums;
    sums.count[first.is_write] = times;
    sums.bytes = times * first.size;
    of_site_[first.site] += sums;
    of_thread += sums;
    footprint_.touch_run(first.address + space, std::max<uint16_t>(first.size, 1), step, times,
                         first.is_write);
  }
}

AccessSums AccessCounts::all() const {
  AccessSums all;
  for (const AccessSums &site : of_site_)
    all += site;
  return all;
}

} // namespace analyze
