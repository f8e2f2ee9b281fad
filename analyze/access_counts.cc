#include "analyze/access_counts.h"

namespace analyze {

void AccessCounts::accesses(const profile::AccessOrigin &origin,
                            std::span<const profile::Access> batch) {
  const uint64_t space = spaces_.of(origin.process);
  AccessSums sums;
  for (const profile::Access &each : batch) {
    if (each.site >= of_site_.size())
      of_site_.resize(each.site + size_t{1});
    AccessSums &site = of_site_[each.site];
    site.count[each.is_write]++;
    site.bytes += each.size;
    sums.count[1] += each.is_write;
    sums.bytes += each.size;
    if (each.size) // string instructions of no bytes do not exist, but files may be damaged
      footprint_.touch(each.address + space, each.size, each.is_write);
  }
  sums.count[0] = batch.size() - sums.count[1];
  of_thread_[{origin.process, origin.thread}] += sums;
}

AccessSums AccessCounts::all() const {
  AccessSums all;
  for (const AccessSums &site : of_site_)
    all += site;
  return all;
}

} // namespace analyze
