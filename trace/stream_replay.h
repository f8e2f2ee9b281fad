// From what threads logged to the accesses of each in their order, with what a signal handler did
// where it interrupted its thread. Of a trace in a file and of a program that runs alike.
#pragma once

#include "trace/decode.h"
#include "trace/interruptions.h"
#include "trace/trace_data.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trace {

class StreamReplay {
public:
  // Both must outlive it. The decoder may learn files and mappings meanwhile, before they are needed.
  StreamReplay(const GroupDecoder &decoder, profile::AccessSink &sink)
      : decoder_(decoder), sink_(sink) {}
  StreamReplay(const StreamReplay &) = delete; // the output refers to it

  // In the order of TraceSink: a stream before its buffers, a handler's before the buffer that it
  // interrupted. Handlers' buffers are kept until then. Throws Failure where what was logged is
  // damaged.
  void stream(const TracedStream &stream);
  void buffer(const TracedBuffer &buffer);
  // A thread's, from one byte of it to another or a little further; returns where it stopped.
  uint64_t part(const TracedBuffer &buffer, uint64_t from, uint64_t to);
  // Nothing more comes. `finishes`: the threads were not ended anywhere, so what follows without
  // further bytes has happened.
  void end(bool finishes);
  // Of what has been decoded.
  LoggedCounts logged() const;

private:
  struct Stored { // a buffer of a handler
    uint64_t offset;
    std::vector<std::byte> data;
  };
  struct Stream {
    TracedStream of;
    bool is_announced = false;
    StreamPosition position;
    uint64_t bytes = 0;         // decoded, from the begin of the stream
    std::vector<Stored> stored; // of a handler
    Interruptions handlers;     // that are yet to come
  };
  uint64_t decode(Stream &stream, uint64_t offset, std::span<const std::byte> data, uint64_t from,
                  uint64_t end);
  void finish(Stream &first, bool finishes);
  Stream &take_handler(Stream &stream);
  void take_due(Stream &stream, uint64_t byte, bool finishes);

  const GroupDecoder &decoder_;
  profile::AccessSink &sink_;
  profile::AccessOrigin origin_; // of what is being decoded
  AccessOutput output_{[this](auto batch) { sink_.accesses(origin_, batch); },
                       [this](auto body, uint64_t times) { sink_.loop(origin_, body, times); }};
  std::unordered_map<uint32_t, Stream> streams_; // by number
  std::vector<uint32_t> order_;                  // as they came
};

} // namespace trace
