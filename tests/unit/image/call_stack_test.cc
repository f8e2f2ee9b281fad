// Call stacks share their frames with whoever made them, and keep them alive.

#include "image/frame.h"
#include "image/symbols.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace {

image::Frame frame(const std::string &function) {
  image::Frame frame;
  frame.function = function;
  return frame;
}

TEST(CallStack, ReadsLikeAVector) {
  image::CallStack stack = {frame("inner"), frame("outer")};
  stack.push_back(frame("main"));
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_FALSE(stack.empty());
  EXPECT_EQ(stack.front().function, "inner");
  EXPECT_EQ(stack[1].function, "outer");
  EXPECT_EQ(stack.back().function, "main");
  std::string all;
  for (const image::Frame &each : stack)
    all += each.function + " ";
  EXPECT_EQ(all, "inner outer main ");
  auto found = std::find_if(stack.begin(), stack.end(),
                            [](const image::Frame &each) { return each.function == "outer"; });
  EXPECT_EQ(std::distance(stack.begin(), found), 1);
  EXPECT_TRUE(image::CallStack().empty());
}

TEST(CallStack, CopiesAndPartsShareFrames) {
  image::CallStack inner = {frame("inner")}, outer = {frame("outer"), frame("main")};
  image::CallStack whole = inner;
  whole.append(outer);
  ASSERT_EQ(whole.size(), 3u);
  EXPECT_EQ(&whole[0], &inner[0]);
  EXPECT_EQ(&whole[2], &outer[1]);
  EXPECT_EQ(inner.size(), 1u);
}

TEST(CallStack, SymbolsHandOutOneFrameForAPlaceAndItOutlivesThem) {
  std::optional<image::Symbols> symbols = image::open({});
  image::CallStack stack = symbols->call(image::Symbols::kNoModule, 0x1001);
  stack.append(symbols->call(image::Symbols::kNoModule, 0x1001));
  EXPECT_EQ(&stack[0], &stack[1]);
  symbols.reset();
  EXPECT_EQ(stack[0].function, "0x1000");
}

} // namespace
