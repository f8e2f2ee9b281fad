#include "analyze/finding.h"

#include "profile/losses.h"

#include "abi/records.h"

#include <algorithm>

namespace analyze {

static bool among(std::span<const uint32_t> kinds, uint32_t kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

std::map<uint32_t, uint64_t> general_losses(const std::map<uint32_t, uint64_t> &losses) {
  static constexpr uint32_t kGeneral[] = {
      ASSAY_LOSS_killed,           ASSAY_LOSS_truncated,          ASSAY_LOSS_no_memory,
      ASSAY_LOSS_bad_record,       ASSAY_LOSS_write_failed,       ASSAY_LOSS_unknown_record,
      ASSAY_LOSS_unrecorded_child, ASSAY_LOSS_unreadable_profile, ASSAY_LOSS_not_interposed};
  std::map<uint32_t, uint64_t> general;
  for (auto [kind, count] : losses)
    if (count && among(kGeneral, kind))
      general[kind] = count;
  return general;
}

std::vector<std::string> losses_among(const std::map<uint32_t, uint64_t> &losses,
                                      std::span<const uint32_t> kinds) {
  const std::map<uint32_t, uint64_t> general = general_losses(losses);
  std::vector<std::string> names;
  for (auto [kind, count] : losses)
    if (count && (general.count(kind) || among(kinds, kind)))
      names.push_back(profile::loss_kind(kind).name);
  return names;
}

} // namespace analyze
