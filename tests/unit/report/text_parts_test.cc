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
  EXPECT_TRUE(begins(ASSAY_LOSS_forked_use, 1, "1 process"));
  EXPECT_TRUE(begins(ASSAY_LOSS_forked_use, 2, "2 processes"));
  EXPECT_TRUE(begins(ASSAY_LOSS_shared_counters, 1, "1 object without a header"));
}

// What follows is said of one as of many.
TEST(LossText, SentencesFitEachNumber) {
  for (uint32_t loss = 1; loss < 64; loss++)
    EXPECT_EQ(report::loss_text(loss, 1).find(": were "), std::string::npos) << loss;
}

TEST(CommandText, LongOnesAreCutInTheMiddle) {
  EXPECT_EQ(report::command_text(std::vector<std::string>{"./a b", "--fast"}), "'./a b' --fast");
  std::vector<std::string> words{"./app"};
  words.resize(10'000, "argument");
  words.back() = "last";
  const std::string text = report::command_text(words);
  EXPECT_LT(text.size(), 450u);
  EXPECT_TRUE(text.starts_with("./app argument ") && text.ends_with(" last")) << text;
}

} // namespace
