#include "base/byte_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (int value : values)
    result.push_back(static_cast<std::byte>(value));
  return result;
}

TEST(ByteReader, ReadsUnalignedLittleEndianScalars) {
  auto data = bytes({9, 1, 2, 0, 0});
  base::ByteReader reader(data);
  reader.skip(1);
  EXPECT_EQ(reader.read<uint32_t>(), 0x201u);
  EXPECT_TRUE(reader.at_end());
}

TEST(ByteReader, FailureNamesSourceAndOffsetAndMovesNothing) {
  auto data = bytes({1, 2, 3});
  base::ByteReader reader(data, "file.x", 100);
  reader.skip(1);
  try {
    reader.read<uint32_t>();
    FAIL() << "it read past the end";
  } catch (const base::Failure &failure) {
    EXPECT_STREQ(failure.what(), "file.x: 4 bytes wanted at offset 101, but only 2 are left");
  }
  EXPECT_EQ(reader.left(), 2u);
}

TEST(ByteReader, SizesThatWouldWrapFail) {
  auto data = bytes({1, 2, 3});
  base::ByteReader reader(data);
  reader.skip(2);
  EXPECT_THROW(reader.bytes(UINT64_MAX), base::Failure);
  EXPECT_THROW(reader.text(UINT64_MAX - 1), base::Failure);
}

TEST(ByteReader, StringsNeedTheirZeroByte) {
  auto data = bytes({'a', 'b', 0, 'c'});
  base::ByteReader reader(data);
  EXPECT_EQ(reader.zero_terminated(), "ab");
  EXPECT_THROW(reader.zero_terminated(), base::Failure);
  EXPECT_EQ(reader.text(1), "c");
  EXPECT_THROW(reader.zero_terminated(), base::Failure);
}

} // namespace
