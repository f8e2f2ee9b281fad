// Losses of what one tool measures are nothing that another one lacks.

#include "analyze/measured.h"

namespace analyze {
namespace {

struct LossOfTools {
  uint32_t kind;
  uint64_t tools;
};
constexpr LossOfTools kOfTools[] = {
    {ASSAY_LOSS_forked_use, ASSAY_TOOL_heap | ASSAY_TOOL_objects},
    {ASSAY_LOSS_shared_counters, ASSAY_TOOL_heap},
    {ASSAY_LOSS_field_units, ASSAY_TOOL_fields},
    {ASSAY_LOSS_field_layouts, ASSAY_TOOL_fields},
    {ASSAY_LOSS_full_sets, ASSAY_TOOL_fields},
    {ASSAY_LOSS_no_words, ASSAY_TOOL_objects},
    {ASSAY_LOSS_hot_words, ASSAY_TOOL_objects},
    {ASSAY_LOSS_scattered_words, ASSAY_TOOL_objects},
};

} // namespace

std::map<uint32_t, uint64_t> losses_of(const profile::Profile &profile, uint64_t tool) {
  std::map<uint32_t, uint64_t> losses = profile.losses;
  for (const LossOfTools &each : kOfTools)
    if (!(each.tools & tool))
      losses.erase(each.kind);
  return losses;
}

} // namespace analyze
