// A thread's buffers are decoded as they come. What a handler logs comes before the buffer that it
// interrupted (TraceSink), so it is kept, and decoded when its thread has come to that place;
// handlers of handlers likewise.
//
// A handler whose thread logs on afterwards has returned, or was left by a jump; it is taken to
// have returned. Where its thread logs nothing more, the handler's stream says whether it has
// returned, if that is known (TracedStream::has_returned).

#include "trace/stream_replay.h"

#include <algorithm>

namespace trace {

void StreamReplay::stream(const TracedStream &stream) {
  Stream &known = streams_[stream.number];
  known.of = stream;
  if (!known.is_announced)
    order_.push_back(stream.number);
  known.is_announced = true;
  if (!stream.in_handler())
    return;
  // The interrupted stream may be announced later, or never: then its thread has logged nothing else.
  std::deque<uint32_t> &handlers = streams_[stream.parent].handlers;
  auto at = std::upper_bound(handlers.begin(), handlers.end(), stream.number,
                             [&](uint32_t a, uint32_t b) {
                               return std::pair(streams_[a].of.parent_bytes, a) <
                                      std::pair(streams_[b].of.parent_bytes, b);
                             });
  handlers.insert(at, stream.number);
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
      interruptions(streams_[stream.of.parent], UINT64_MAX, finishes);
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
    Stream *stream;
    bool may_have_left = false;
  };
  std::vector<Ending> endings = {{&first}};
  while (!endings.empty()) {
    Ending &last = endings.back();
    Stream &stream = *last.stream;
    if (stream.handlers.empty()) {
      if (!last.may_have_left && finishes) {
        origin_ = stream.of.origin();
        decoder_.finish(stream.position, output_);
      }
      endings.pop_back();
      continue;
    }
    const bool is_at_end = next_interruption(stream) >= stream.bytes;
    Stream &handler = take_handler(stream);
    last.may_have_left |= is_at_end && !handler.of.has_returned();
    if (last.may_have_left && stream.handlers.empty())
      endings.pop_back();
    endings.push_back({&handler});
  }
}

// Handlers that interrupted the stream before this byte of it.
void StreamReplay::interruptions(Stream &stream, uint64_t before, bool finishes) {
  while (next_interruption(stream) < before)
    finish(take_handler(stream), finishes);
}

// The handler that comes next, with all that it logged decoded.
StreamReplay::Stream &StreamReplay::take_handler(Stream &stream) {
  Stream &handler = streams_[stream.handlers.front()];
  stream.handlers.pop_front();
  const std::vector<Stored> stored = std::move(handler.stored);
  for (const Stored &buffer : stored)
    decode(handler, buffer.offset, buffer.data, 0, buffer.data.size());
  return handler;
}

// UINT64_MAX: there is none.
uint64_t StreamReplay::next_interruption(const Stream &stream) const {
  return stream.handlers.empty() ? UINT64_MAX
                                 : streams_.at(stream.handlers.front()).of.parent_bytes;
}

uint64_t StreamReplay::decode(Stream &stream, uint64_t offset, std::span<const std::byte> data,
                              uint64_t from, uint64_t end) {
  stream.bytes = offset + data.size();
  uint64_t at = from;
  while (at < end) {
    const uint64_t stop = next_interruption(stream);
    const uint64_t to = std::min(end, stop > offset ? stop - offset : 0);
    if (to > at) {
      origin_ = stream.of.origin();
      at = decoder_.decode(stream.of, stream.position, data, at, to, output_);
    }
    if (at < data.size())
      interruptions(stream, offset + at + 1, true);
  }
  return at;
}

} // namespace trace
