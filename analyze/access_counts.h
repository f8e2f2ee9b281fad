// `assay trace counts`: how often each instruction accesses memory, and how much memory there is behind it.
#pragma once

#include "analyze/address_spaces.h"
#include "analyze/footprint.h"
#include "profile/access_stream.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace analyze {

struct AccessSums {
  uint64_t count[2] = {0, 0}; // reads, writes
  uint64_t bytes = 0;         // read and written
  uint64_t reads() const { return count[0]; }
  uint64_t writes() const { return count[1]; }
  uint64_t accesses() const { return count[0] + count[1]; }
  AccessSums &operator+=(const AccessSums &other) {
    count[0] += other.count[0];
    count[1] += other.count[1];
    bytes += other.bytes;
    return *this;
  }
};

class AccessCounts final : public profile::AccessSink {
public:
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override;
  // In closed form: the time does not depend on the iterations, but where each touches a line of its own.
  void loop(const profile::AccessOrigin &origin, std::span<const profile::AccessRun> body,
            uint64_t times) override;

  // By site; sites behind the end made none.
  const std::vector<AccessSums> &of_site() const { return of_site_; }
  AccessSums all() const;
  const std::map<std::pair<uint32_t, uint32_t>, AccessSums> &
  of_thread() const { // by process and thread
    return of_thread_;
  }
  Footprint::Size footprint() const { return footprint_.size(); }

private:
  void count(std::span<const profile::Access> piece, uint64_t space, AccessSums &of_all);

  std::vector<AccessSums> of_site_;
  std::map<std::pair<uint32_t, uint32_t>, AccessSums> of_thread_;
  AddressSpaces spaces_;
  Footprint footprint_;
};

} // namespace analyze
