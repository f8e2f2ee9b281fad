#include "analyze/measured.h"

#include "profile/tool.h"

#include <set>

namespace analyze {

std::map<uint32_t, uint64_t> losses_of(const profile::Profile &profile, uint64_t tool) {
  std::set<uint32_t> own, of_others;
  for (size_t bit = 0; bit < profile::tool_records().size(); bit++) {
    const auto &kinds = profile::tool_records()[bit]->losses;
    (tool >> bit & 1 ? own : of_others).insert(kinds.begin(), kinds.end());
  }
  std::map<uint32_t, uint64_t> losses = profile.losses;
  for (const uint32_t kind : of_others)
    if (!own.contains(kind))
      losses.erase(kind);
  return losses;
}

} // namespace analyze
