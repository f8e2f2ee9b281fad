// The order in which handlers are told, and what is not told behind one that may have jumped; then
// the same of streams that are replayed.

#include "trace/interruptions.h"

#include "trace/stream_replay.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace trace {
namespace {

TracedStream thread_stream(uint32_t number) {
  TracedStream stream;
  stream.number = number;
  stream.kind = ASSAY_STREAM_groups;
  stream.program = 1;
  return stream;
}

TracedStream handler(uint32_t number, uint32_t parent, uint64_t at, bool has_returned = false) {
  TracedStream stream = thread_stream(number);
  stream.kind = has_returned ? ASSAY_STREAM_returned_groups : ASSAY_STREAM_handler_groups;
  stream.parent = parent;
  stream.parent_bytes = at;
  return stream;
}

TEST(Interruptions, ComeInTheOrderOfBytesAndThenOfNumbers) {
  Interruptions handlers;
  EXPECT_EQ(handlers.next_at(), Interruptions::kNever);
  for (const TracedStream &each : {handler(7, 1, 40), handler(3, 1, 40), handler(9, 1, 0)})
    handlers.add(each);
  std::vector<uint32_t> numbers;
  while (!handlers.empty())
    numbers.push_back(handlers.take().number);
  EXPECT_EQ(numbers, (std::vector<uint32_t>{9, 3, 7}));
}

TEST(Interruptions, ComeBeforeTheByteThatFollowsThem) {
  Interruptions handlers;
  handlers.add(handler(2, 1, 40));
  EXPECT_FALSE(handlers.is_due(39));
  EXPECT_TRUE(handlers.is_due(40));
  EXPECT_TRUE(handlers.is_due(41));
  handlers.take();
  EXPECT_FALSE(handlers.is_due(Interruptions::kNever));
}

TEST(Interruptions, EndARunOfBytes) {
  Interruptions handlers;
  EXPECT_EQ(handlers.end_of_run(100, 5, 30), 30u);
  handlers.add(handler(2, 1, 110));
  EXPECT_EQ(handlers.end_of_run(100, 5, 30), 10u);
  EXPECT_EQ(handlers.end_of_run(100, 5, 8), 8u);    // it comes later
  EXPECT_EQ(handlers.end_of_run(100, 20, 30), 20u); // it should have come
  EXPECT_EQ(handlers.end_of_run(200, 5, 30), 5u);   // in a buffer before this one
}

TEST(Interruptions, MayLeaveAStreamAtItsEndAlone) {
  Interruptions handlers;
  handlers.add(handler(2, 1, 40));
  handlers.add(handler(3, 1, 80, true));
  EXPECT_TRUE(handlers.may_have_left(40));
  EXPECT_FALSE(handlers.may_have_left(80)); // 2 was followed by bytes, 3 has returned
  handlers.add(handler(4, 1, 80));
  EXPECT_TRUE(handlers.may_have_left(80)); // whatever the one before it did
  while (!handlers.empty())
    handlers.take();
  EXPECT_FALSE(handlers.may_have_left(0));
}

// One group, whose address says which stream has made it, and when.
class Replaying : public testing::Test, public profile::AccessSink {
protected:
  static constexpr uint64_t kGroupBytes = 12;

  Replaying() {
    GroupAccess access;
    access.size = 8;
    access.terms = 1;
    Group group;
    group.values.resize(1);
    group.accesses = {access};
    TracedFile file;
    file.number = 1;
    file.groups = 1;
    decoder.add(file, std::vector<Group>{group});
    decoder.add(TracedMapping{1, 1, 0, 0});
  }
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override {
    for (const profile::Access &access : batch) {
      EXPECT_EQ(access.address / 100, origin.stream);
      made.push_back(access.address);
    }
  }
  // Groups of the stream that follow `already`.
  void log(StreamReplay &replay, uint32_t stream, uint32_t already, uint32_t groups) {
    std::vector<std::byte> bytes(groups * kGroupBytes);
    for (uint32_t i = 0; i < groups; i++) {
      const uint32_t number = 1;
      const uint64_t value = 100 * stream + already + i;
      std::memcpy(&bytes[i * kGroupBytes], &number, 4);
      std::memcpy(&bytes[i * kGroupBytes + 4], &value, 8);
    }
    TracedBuffer buffer;
    buffer.stream = stream;
    buffer.offset = already * kGroupBytes;
    buffer.data = bytes;
    replay.buffer(buffer);
  }

  GroupDecoder decoder;
  std::vector<uint64_t> made;
};

TEST_F(Replaying, HandlersComeWhereTheyInterrupted) {
  StreamReplay replay(decoder, *this);
  replay.stream(thread_stream(1));
  log(replay, 1, 0, 2);
  replay.stream(handler(3, 1, 3 * kGroupBytes));
  replay.stream(handler(4, 3, kGroupBytes)); // a handler of the handler
  log(replay, 4, 0, 1);
  log(replay, 3, 0, 2);
  replay.stream(handler(2, 1, 3 * kGroupBytes)); // as late in the stream, and earlier by its number
  log(replay, 2, 0, 1);
  replay.stream(handler(5, 1, 4 * kGroupBytes)); // at its end
  log(replay, 5, 0, 1);
  log(replay, 1, 2, 2);
  replay.end(true);
  EXPECT_EQ(made, (std::vector<uint64_t>{100, 101, 102, 200, 300, 400, 301, 103, 500}));
}

TEST_F(Replaying, HandlersOfAThreadThatLoggedNothingAreTold) {
  StreamReplay replay(decoder, *this);
  replay.stream(handler(3, 1, 0));
  log(replay, 3, 0, 1);
  replay.stream(handler(2, 1, 0));
  log(replay, 2, 0, 1);
  replay.end(true);
  EXPECT_EQ(made, (std::vector<uint64_t>{200, 300}));
}

} // namespace
} // namespace trace
