// Which accesses an instruction has: each once, however often its micro-ops use what was read.

#include "binary/decoder.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace binary {
namespace {

std::vector<uint16_t> sizes(std::initializer_list<int> bytes) {
  std::vector<std::byte> raw;
  for (int byte : bytes)
    raw.push_back(static_cast<std::byte>(byte));
  raw.resize(16);
  Code code;
  EXPECT_TRUE(Decoder().decode(raw, 0x1000, code));
  std::vector<uint16_t> found;
  for (const Access &access : code.accesses)
    found.push_back(access.size);
  return found;
}

TEST(Decoder, ShufflesReadTheirOperandOnce) {
  using Sizes = std::vector<uint16_t>;
  EXPECT_EQ(sizes({0x66, 0x0f, 0x70, 0x07, 0xd8}), Sizes{16});       // pshufd xmm0, [rdi], 0xd8
  EXPECT_EQ(sizes({0xf2, 0x0f, 0x70, 0x07, 0xd8}), Sizes{16});       // pshuflw xmm0, [rdi], 0xd8
  EXPECT_EQ(sizes({0x0f, 0xc6, 0x07, 0x39}), Sizes{16});             // shufps xmm0, [rdi], 0x39
  EXPECT_EQ(sizes({0xc5, 0xfd, 0x70, 0x07, 0xd8}), Sizes{32});       // vpshufd ymm0, [rdi], 0xd8
  EXPECT_EQ(sizes({0xc4, 0xe3, 0x7d, 0x04, 0x07, 0xd8}), Sizes{32}); // vpermilps ymm0, [rdi], 0xd8
  EXPECT_EQ(sizes({0xc4, 0xe3, 0xfd, 0x00, 0x07, 0xd8}), Sizes{32}); // vpermq ymm0, [rdi], 0xd8
}

TEST(Decoder, SystemCallsReadTheirArguments) {
  Code code;
  const std::byte raw[] = {std::byte{0x0f}, std::byte{0x05}};
  ASSERT_TRUE(Decoder().decode(raw, 0x1000, code));
  for (unsigned reg :
       {unsigned{ASSAY_REG_RAX}, unsigned{ASSAY_REG_RDI}, unsigned{ASSAY_REG_R8} + 2})
    EXPECT_TRUE(code.instructions[0].reads & bit(reg));
}

} // namespace
} // namespace binary
