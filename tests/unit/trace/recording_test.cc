#include "trace/recording.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

class NoSink : public trace::TraceSink {
  void file(const trace::TracedFile &, const trace::MovedModule &) override {}
  void mapping(const trace::TracedMapping &) override {}
  void stream(const trace::TracedStream &) override {}
  void buffer(const trace::TracedBuffer &) override {}
  void end(const trace::TraceEnd &) override {}
};

// The ring as a traced program maps it.
class RecordingTest : public testing::Test {
public:
  void SetUp() override {
    const int file = open(recording_.environment().second.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
    void *mapped = mmap(nullptr, ASSAY_RING_BYTES, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    ASSERT_NE(mapped, MAP_FAILED);
    ring_ = static_cast<AssayTraceRing *>(mapped);
  }
  void TearDown() override { munmap(ring_, ASSAY_RING_BYTES); }

  // Its threads that have ended are looked for at once where a place is wanted.
  void look() {
    ring_->wanted++;
    recording_.poll(std::chrono::milliseconds(0));
  }

  NoSink sink_;
  trace::Recording recording_{{}, sink_};
  AssayTraceRing *ring_ = nullptr;
};

TEST_F(RecordingTest, APlaceIsFreeAgainIfItsThreadIsKilledWhileItTakesIt) {
  const pid_t child = fork();
  if (child == 0)
    _exit(0);
  siginfo_t ended = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT),
            0); // not waited for yet
  ring_->all[0].kind = ASSAY_RING_CLAIMED | static_cast<uint32_t>(child);
  ring_->all[1].kind = ASSAY_RING_CLAIMED | static_cast<uint32_t>(gettid());
  ring_->all[2].kind = ASSAY_RING_CLAIMED; // of another namespace
  look();
  EXPECT_EQ(ring_->all[0].kind, uint32_t{ASSAY_STREAM_free});
  EXPECT_EQ(ring_->all[1].kind, ASSAY_RING_CLAIMED | static_cast<uint32_t>(gettid()));
  EXPECT_EQ(ring_->all[2].kind, ASSAY_RING_CLAIMED);
  waitpid(child, nullptr, 0);
  ring_->all[0].kind = ASSAY_RING_CLAIMED | static_cast<uint32_t>(child);
  look();
  EXPECT_EQ(ring_->all[0].kind, uint32_t{ASSAY_STREAM_free});
}

// A stream of this thread, which has written 5 bytes, and then nothing, or into what comes behind, before it was left.
TEST_F(RecordingTest, WhatAStreamMayHaveWrittenIsStaleWhenItsPlaceIsFree) {
  auto *data = reinterpret_cast<char *>(ring_) + assay_ring_buffer(0, 0);
  uint64_t position = 0; // in no buffer: where it was is not known
  AssayRingStream &stream = ring_->all[0];
  stream.number = 7;
  stream.process = stream.thread = static_cast<uint32_t>(getpid());
  stream.pid_namespace = ring_->pid_namespace;
  stream.position = reinterpret_cast<uint64_t>(&position);
  stream.data = reinterpret_cast<uint64_t>(data);
  for (const uint32_t written : {5u, 70'000u, ASSAY_RING_BUFFER_BYTES}) {
    stream.ended = stream.number + 1;
    stream.buffers[0] = {};
    std::fill_n(data, ASSAY_RING_BUFFER_BYTES, '\0');
    data[0] = 1;
    data[written - 1] = 1;
    stream.kind = ASSAY_STREAM_groups;
    look();
    EXPECT_EQ(stream.kind, uint32_t{ASSAY_STREAM_free});
    EXPECT_EQ(stream.buffers[0].stale_bytes, written);
  }
  // Where it says how much it has logged, values may lie behind it, and the position is that of
  // another stream in its place.
  position = stream.data + 9;
  stream.ended = stream.number + 1;
  stream.buffers[0] = {};
  stream.buffers[0].bytes = 5;
  stream.kind = ASSAY_STREAM_groups;
  look();
  EXPECT_EQ(stream.buffers[0].stale_bytes, 5 + ASSAY_RING_SLACK);
}

} // namespace
