// How signal handlers' streams nest in the stream that they interrupted: one rule for all who read
// streams in order.
//
// - What a handler logged comes right before the first byte that its thread logged behind it, which
//   is byte TracedStream::parent_bytes of the interrupted stream. Where several interrupted it at
//   the same byte, the one with the lower number came first.
// - A handler behind which the stream goes on has returned, or was left by a jump; it is taken to
//   have returned.
// - One that interrupted the stream at its end may have left it by a jump, unless it is known to
//   have returned (TracedStream::has_returned()). Then what would follow in the stream without
//   further bytes may not have happened.
#pragma once

#include "trace/trace_data.h"

#include <cstdint>
#include <deque>

namespace trace {

// The handlers that interrupted one stream and are yet to come, in their order.
class Interruptions {
public:
  static constexpr uint64_t kNever = UINT64_MAX;
  struct Handler {
    uint64_t at = 0;     // the byte of the interrupted stream that comes behind it
    uint32_t number = 0; // of its stream
    bool has_returned = false;
  };

  // A handler's stream, of those that interrupted this one. In any order; each once.
  void add(const TracedStream &handler);

  bool empty() const { return handlers_.empty(); }
  // Where the next one comes; kNever: there is none.
  uint64_t next_at() const { return empty() ? kNever : handlers_.front().at; }
  // Whether it is one that comes before this byte of the stream.
  bool is_due(uint64_t byte) const { return !empty() && next_at() <= byte; }
  // Of a buffer that begins with byte `offset` of the stream: where the bytes from `from` on end that come before
  // the next one; at `to` at the latest.
  uint64_t end_of_run(uint64_t offset, uint64_t from, uint64_t to) const;
  // The next one; there must be one. take() takes it away.
  const Handler &next() const { return handlers_.front(); }
  Handler take();

  // Of the stream, which has ended behind so many bytes: whether one of these may have left it by a jump.
  bool may_have_left(uint64_t bytes) const;

private:
  std::deque<Handler> handlers_;
};

} // namespace trace
