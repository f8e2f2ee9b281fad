// A tool's report shows what it lacks itself.
#include "analyze/measured.h"

#include <gtest/gtest.h>

namespace {

using Losses = std::map<uint32_t, uint64_t>;

TEST(Losses, OfAnotherToolAreLeftOut) {
  profile::Profile profile;
  profile.losses = {{ASSAY_LOSS_killed, 1},       {ASSAY_LOSS_forked_use, 2},
                    {ASSAY_LOSS_full_sets, 3},    {ASSAY_LOSS_hot_words, 4},
                    {ASSAY_LOSS_lost_samples, 5}, {ASSAY_LOSS_shared_counters, 6}};
  const auto killed = std::pair(uint32_t{ASSAY_LOSS_killed}, uint64_t{1});
  const auto lost = std::pair(uint32_t{ASSAY_LOSS_lost_samples}, uint64_t{5});
  EXPECT_EQ(analyze::losses_of(profile, ASSAY_TOOL_heap),
            (Losses{killed, {ASSAY_LOSS_forked_use, 2}, lost, {ASSAY_LOSS_shared_counters, 6}}));
  EXPECT_EQ(analyze::losses_of(profile, ASSAY_TOOL_objects),
            (Losses{killed, {ASSAY_LOSS_forked_use, 2}, {ASSAY_LOSS_hot_words, 4}, lost}));
  EXPECT_EQ(analyze::losses_of(profile, ASSAY_TOOL_fields),
            (Losses{killed, {ASSAY_LOSS_full_sets, 3}, lost}));
  EXPECT_EQ(analyze::losses_of(profile, ASSAY_TOOL_workingset), (Losses{killed, lost}));
  EXPECT_EQ(analyze::losses_of(profile, ASSAY_TOOL_heap | ASSAY_TOOL_objects | ASSAY_TOOL_fields),
            profile.losses);
}

} // namespace
