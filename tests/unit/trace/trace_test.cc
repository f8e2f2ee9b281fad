// What is written of groups and functions is read again; and groups become accesses.

#include "base/fail.h"
#include "trace/decode.h"

#include <gtest/gtest.h>

#include <cstring>

namespace trace {
namespace {

Group two_accesses() {
  Group group;
  group.values.resize(2);
  GroupAccess first;
  first.pc = 0x1000;
  first.offset = -8;
  first.size = 4;
  first.terms = 2;
  first.term[0] = {0, 0};
  first.term[1] = {1, 3};
  GroupAccess second;
  second.pc = 0x1004;
  second.offset = 0x4010;
  second.size = 8;
  second.write = second.in_image = true;
  group.accesses = {first, second};
  return group;
}

Group loop(int64_t step) {
  Group group;
  group.values.resize(2);
  group.loop = LoopOfGroup{1, {0, step}};
  GroupAccess access;
  access.pc = 0x2000;
  access.size = 8;
  access.terms = 1;
  access.term[0] = {1, 0};
  group.accesses = {access};
  return group;
}

Group copy_of_string() {
  Group group;
  group.values.resize(3);
  GroupAccess read;
  read.pc = 0x3000;
  read.size = 1;
  read.terms = 1;
  read.term[0] = {1, 0};
  read.times = 0;
  GroupAccess write = read;
  write.write = true;
  write.term[0] = {2, 0};
  group.accesses = {read, write};
  return group;
}

class Buffer {
public:
  Buffer &group(uint32_t number, std::initializer_list<uint64_t> values) {
    put(number + 1);
    for (uint64_t value : values)
      put(value);
    return *this;
  }
  std::vector<std::byte> bytes;

private:
  template <class T> void put(T value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
};

class Decoding : public testing::Test {
protected:
  Decoding() {
    const std::vector<Group> groups = {two_accesses(), loop(8), loop(-16), copy_of_string()};
    TracedFile file;
    file.number = 1;
    file.groups = 4;
    decoder.add(file, groups);
    decoder.add(TracedMapping{7, 1, 0x550000000000, 0});
    stream.program = 7;
  }
  std::vector<profile::Access> accesses_of(const Buffer &buffer) {
    std::vector<profile::Access> accesses;
    StreamPosition position;
    AccessOutput output(
        [&](auto batch) { accesses.insert(accesses.end(), batch.begin(), batch.end()); });
    decoder.decode(stream, position, buffer.bytes, 0, buffer.bytes.size(), output);
    return accesses;
  }
  GroupDecoder decoder;
  TracedStream stream;
};

TEST(TraceData, GroupsAreReadAsTheyWereWritten) {
  const std::vector<Group> groups = {two_accesses(), loop(8), copy_of_string()};
  const auto bytes = encode(groups);
  const auto read = decode_groups(bytes, 3);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(encode(read), bytes);
  EXPECT_EQ(read[0].accesses[1].pc, 0x1004u);
  EXPECT_TRUE(read[0].accesses[1].in_image);
  EXPECT_EQ(read[1].loop->steps, (std::vector<int64_t>{0, 8}));
  EXPECT_EQ(read[2].accesses[1].times, 0);
}

TEST(TraceData, DamagedGroupsAreRefused) {
  auto bytes = encode(std::vector<Group>{two_accesses()});
  EXPECT_THROW(decode_groups(std::span(bytes).first(bytes.size() - 1), 1), base::Failure);
  EXPECT_THROW(decode_groups(bytes, 1000), base::Failure);
  Group counted_by_nothing = loop(0);
  bytes = encode(std::vector<Group>{counted_by_nothing});
  EXPECT_THROW(decode_groups(bytes, 1), base::Failure);
  Group names_more = two_accesses();
  names_more.accesses[0].term[0].value = 9;
  bytes = encode(std::vector<Group>{names_more});
  EXPECT_THROW(decode_groups(bytes, 1), base::Failure);
}

TEST(TraceData, FunctionsAreReadAsTheyWereWritten) {
  MovedFunction function;
  function.name = "main";
  function.address = 0x1234;
  function.bytes = 20;
  function.why = WhyUnmoved::shared_table;
  function.accesses = 5;
  const auto bytes = encode(std::vector<MovedFunction>{function, function});
  const auto read = decode_functions(bytes, 2);
  EXPECT_EQ(encode(read), bytes);
  EXPECT_EQ(read[1].name, "main");
  EXPECT_EQ(read[1].why, WhyUnmoved::shared_table);
}

TEST_F(Decoding, AddsTermsAndBases) {
  const auto accesses = accesses_of(Buffer().group(0, {0x7000, 3}));
  ASSERT_EQ(accesses.size(), 2u);
  EXPECT_EQ(accesses[0].address, 0x7000u + 3 * 8 - 8);
  EXPECT_FALSE(accesses[0].is_write);
  EXPECT_EQ(accesses[1].address, 0x550000004010u);
  EXPECT_TRUE(accesses[1].is_write);
  EXPECT_EQ(decoder.sites()[accesses[1].site].offset, 0x1004u);
}

TEST_F(Decoding, ExpandsLoopsUpAndDown) {
  auto accesses = accesses_of(Buffer().group(1, {0x7000, 0x7000 + 5 * 8}));
  ASSERT_EQ(accesses.size(), 5u);
  EXPECT_EQ(accesses[0].address, 0x7000u);
  EXPECT_EQ(accesses[4].address, 0x7020u);
  accesses = accesses_of(Buffer().group(2, {0x7000, 0x7000 - 3 * 16}));
  ASSERT_EQ(accesses.size(), 3u);
  EXPECT_EQ(accesses[0].address, 0x7000u);
  EXPECT_EQ(accesses[2].address, 0x6fe0u);
}

TEST_F(Decoding, AccessesOfAStringInstructionTakeTurns) {
  const auto accesses = accesses_of(Buffer().group(3, {2, 0x100, 0x200}));
  ASSERT_EQ(accesses.size(), 4u);
  EXPECT_EQ(accesses[0].address, 0x100u);
  EXPECT_EQ(accesses[1].address, 0x200u);
  EXPECT_EQ(accesses[3].address, 0x201u);
  EXPECT_TRUE(accesses_of(Buffer().group(3, {0, 0x100, 0x200})).empty());
}

// Long loops may be taken as a whole: behind what came before, with the accesses that they would have as others.
TEST_F(Decoding, GivesLongLoopsAsAWhole) {
  Buffer buffer;
  buffer.group(0, {0x7000, 3}).group(1, {0x7000, 0x7000 + 500 * 8}).group(2, {0x7000, 0x6000});
  buffer.group(3, {40, 0x100, 0x200}).group(1, {0x9000, 0x9000 + 2 * 8});
  const std::vector<profile::Access> expected = accesses_of(buffer);
  class : public profile::AccessSink {
  public:
    std::vector<profile::Access> all;
    void accesses(const profile::AccessOrigin &, std::span<const profile::Access> batch) override {
      all.insert(all.end(), batch.begin(), batch.end());
    }
  } sink;
  StreamPosition position;
  int loops = 0;
  AccessOutput output([&](auto batch) { sink.accesses({}, batch); },
                      [&](auto body, uint64_t times) {
                        sink.loop({}, body, times);
                        loops++;
                      });
  decoder.decode(stream, position, buffer.bytes, 0, buffer.bytes.size(), output);
  EXPECT_EQ(loops, 3);
  ASSERT_EQ(sink.all.size(), expected.size());
  for (size_t i = 0; i < expected.size(); i++) {
    EXPECT_EQ(sink.all[i].address, expected[i].address) << i;
    EXPECT_EQ(sink.all[i].site, expected[i].site) << i;
  }
}

TEST_F(Decoding, EndsWhereNothingWasLogged) {
  Buffer buffer;
  buffer.group(0, {1, 2}).group(1, {0, 8});
  const size_t whole = accesses_of(buffer).size();
  buffer.bytes.resize(buffer.bytes.size() + 100);
  EXPECT_EQ(accesses_of(buffer).size(), whole);
  // The upper bytes of the last value are zeros, which look like nothing.
  buffer.bytes.resize(buffer.bytes.size() - 107);
  EXPECT_EQ(accesses_of(buffer).size(), whole);
  // Behind what a thread logged may be what it had begun to write when it was cancelled: of one group, not more.
  Buffer torn;
  torn.group(0, {1, 2}).group(1, {0, 8}).group(99, {});
  EXPECT_EQ(accesses_of(torn).size(), whole);
  torn.bytes.resize(torn.bytes.size() + 5000);
  EXPECT_THROW(accesses_of(torn), base::Failure);
}

} // namespace
} // namespace trace
