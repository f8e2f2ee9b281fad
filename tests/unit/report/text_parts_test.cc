#include "report/text_parts.h"

#include "abi/records.h"

#include <gtest/gtest.h>

namespace {

bool begins(uint32_t loss, uint64_t times, const std::string &text) {
  return report::loss_text(loss, times).starts_with("  " + text + ": ");
}

TEST(LossText, UnitsAgreeWithTheNumber) {
  EXPECT_TRUE(begins(ASSAY_LOSS_one_stripe, 2, "2 threads"));
  EXPECT_TRUE(begins(ASSAY_LOSS_one_stripe, 1, "1 thread"));
  EXPECT_TRUE(begins(ASSAY_LOSS_full_sets, 1, "1 set of fields"));
  EXPECT_TRUE(begins(ASSAY_LOSS_scattered_words, 1, "1 run of words"));
  EXPECT_TRUE(begins(ASSAY_LOSS_scattered_words, 3, "3 runs of words"));
  EXPECT_TRUE(begins(ASSAY_LOSS_too_many_names, 1, "1 pool or event"));
}

} // namespace
