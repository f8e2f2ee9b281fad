// A thread's buffers are decoded as they come. What a handler logs comes before the buffer that it
// interrupted (TraceSink), so it is kept, and decoded when its thread has come to that place;
// handlers of handlers likewise.

#include "trace/stream_replay.h"

namespace trace {

void StreamReplay::stream(const TracedStream &stream) {
  Stream &known = streams_[stream.number];
  known.of = stream;
  if (!known.is_announced)
    order_.push_back(stream.number);
  known.is_announced = true;
  // The interrupted stream may be announced later, or never: then its thread has logged nothing else.
  if (stream.in_handler())
    streams_[stream.parent].handlers.add(stream);
}

void StreamReplay::buffer(const TracedBuffer &buffer) {
  Stream &stream = streams_[buffer.stream];
  if (stream.of.in_handler())
    stream.stored.push_back({buffer.offset, {buffer.data.begin(), buffer.data.end()}});
  else
    part(buffer, 0, buffer.data.size());
}

uint64_t StreamReplay::part(const TracedBuffer &buffer, uint64_t from, uint64_t to) {
  return decode(streams_[buffer.stream], buffer.offset, buffer.data, from, to);
}

void StreamReplay::end(bool finishes) {
  // Handlers that interrupted a thread which has logged nothing else.
  for (uint32_t number : order_) {
    const Stream &stream = streams_[number];
    if (stream.of.in_handler() && !streams_[stream.of.parent].is_announced)
      take_due(streams_[stream.of.parent], Interruptions::kNever, finishes);
  }
  for (uint32_t number : order_)
    if (Stream &stream = streams_[number]; !stream.of.in_handler())
      finish(stream, finishes);
}

LoggedCounts StreamReplay::logged() const {
  LoggedCounts sum;
  for (const auto &[number, stream] : streams_) {
    sum.values += stream.position.skeleton.taken.values;
    sum.branches += stream.position.skeleton.taken.branches;
  }
  return sum;
}

// The stream has ended. It does not go on by itself if a handler that interrupted it at its end may
// have left it by a jump; that handler may have been interrupted at its end as well, and so on,
// often: these are no calls within calls.
void StreamReplay::finish(Stream &first, bool finishes) {
  struct Ending {
    explicit Ending(Stream &of) : stream(&of), may_have_left(of.handlers.may_have_left(of.bytes)) {}
    Stream *stream;
    bool may_have_left;
  };
  std::vector<Ending> endings = {Ending(first)};
  while (!endings.empty()) {
    const auto [stream, may_have_left] = endings.back();
    if (stream->handlers.empty()) {
      if (!may_have_left && finishes) {
        origin_ = stream->of.origin();
        decoder_.finish(stream->position, output_);
      }
      endings.pop_back();
      continue;
    }
    Stream &handler = take_handler(*stream);
    if (may_have_left && stream->handlers.empty())
      endings.pop_back();
    endings.emplace_back(handler);
  }
}

// Handlers that come before this byte of the stream.
void StreamReplay::take_due(Stream &stream, uint64_t byte, bool finishes) {
  while (stream.handlers.is_due(byte))
    finish(take_handler(stream), finishes);
}

// The handler that comes next, with all that it logged decoded.
StreamReplay::Stream &StreamReplay::take_handler(Stream &stream) {
  Stream &handler = streams_[stream.handlers.take().number];
  const std::vector<Stored> stored = std::move(handler.stored);
  for (const Stored &buffer : stored)
    decode(handler, buffer.offset, buffer.data, 0, buffer.data.size());
  return handler;
}

uint64_t StreamReplay::decode(Stream &stream, uint64_t offset, std::span<const std::byte> data,
                              uint64_t from, uint64_t end) {
  stream.bytes = offset + data.size();
  uint64_t at = from;
  while (at < end) {
    const uint64_t to = stream.handlers.end_of_run(offset, at, end);
    if (to > at) {
      origin_ = stream.of.origin();
      at = decoder_.decode(stream.of, stream.position, data, at, to, output_);
    }
    if (at < data.size())
      take_due(stream, offset + at, true); // its thread logs on
  }
  return at;
}

} // namespace trace
