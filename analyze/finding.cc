#include "analyze/finding.h"

#include "profile/losses.h"

#include "abi/records.h"

#include <algorithm>

namespace analyze {

std::vector<std::string> losses_among(const std::map<uint32_t, uint64_t> &losses,
                                      std::span<const uint32_t> kinds) {
  static constexpr uint32_t kAboutAll[] = {ASSAY_LOSS_killed,       ASSAY_LOSS_truncated,
                                           ASSAY_LOSS_no_memory,    ASSAY_LOSS_bad_record,
                                           ASSAY_LOSS_write_failed, ASSAY_LOSS_unknown_record};
  auto among = [](std::span<const uint32_t> list, uint32_t kind) {
    return std::find(list.begin(), list.end(), kind) != list.end();
  };
  std::vector<std::string> names;
  for (auto [kind, count] : losses)
    if (count && (among(kAboutAll, kind) || among(kinds, kind)))
      names.push_back(profile::loss_kind(kind).name);
  return names;
}

} // namespace analyze
