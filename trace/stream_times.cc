#include "trace/stream_times.h"

#include "base/shared_memory.h"
#include "trace/processes.h"

#include <algorithm>

namespace trace {

using base::load_shared;

void StreamTimes::note(uint64_t ns) {
  constexpr uint64_t kEveryNs = 900'000;
  if (ns - noted_ns_ < kEveryNs)
    return;
  noted_ns_ = ns;
  uint32_t threads = 0;
  for (uint32_t slot = 0; slot < ASSAY_RING_STREAMS; slot++)
    if (const uint32_t kind = load_shared(ring_.all[slot].kind);
        is_stream(kind) && !is_handlers(kind))
      if (++threads > 1 || has_several_threads_) // else alone, as far as was known
        note(slot, ns);
  has_several_threads_ = threads > 1;
}

void StreamTimes::note(uint32_t slot, uint64_t ns) {
  constexpr size_t kMax = 16384; // of one buffer
  const AssayRingStream &stream = ring_.all[slot];
  Slot &times = slots_[slot];
  if (times.stream != stream.number + 1)
    times = {stream.number + 1, 0, {}};
  const uint32_t filled = load_shared(stream.filled);
  const std::optional<uint64_t> bytes = bytes_in(slot, filled);
  if (load_shared(stream.filled) != filled)
    return;
  if (!bytes) { // its thread is in a handler, or has ended
    if (!times.gone_ns)
      times.gone_ns = ns;
    return;
  }
  times.gone_ns = 0;
  auto &[buffer, logged] = times.buffers[filled % ASSAY_RING_BUFFERS];
  if (buffer != filled + 1)
    logged.clear();
  buffer = filled + 1;
  const uint64_t since = ns > begin_ns_ ? ns - begin_ns_ : 0;
  // Where a thread waits, when it began to and when it went on.
  if (logged.size() > 1 && logged.back().bytes == *bytes &&
      logged[logged.size() - 2].bytes == *bytes)
    logged.back().ns = since;
  else if (logged.size() < kMax && (logged.empty() || logged.back().bytes <= *bytes))
    logged.push_back({*bytes, since});
}

std::optional<uint64_t> StreamTimes::bytes_in(uint32_t slot, uint32_t buffer) const {
  const AssayRingStream &stream = ring_.all[slot];
  const auto at = stream.pid_namespace == ring_.pid_namespace
                      ? read_word(stream.process, stream.position)
                      : std::nullopt;
  if (!at)
    return std::nullopt;
  const uint64_t bytes =
      *at - (stream.data + uint64_t{buffer % ASSAY_RING_BUFFERS} * ASSAY_RING_BUFFER_BYTES);
  return bytes <= ASSAY_RING_BUFFER_BYTES ? std::optional(bytes) : std::nullopt;
}

std::span<const LoggedBy> StreamTimes::of(uint32_t slot, uint32_t buffer) const {
  const Slot &times = slots_[slot];
  const Slot::OfBuffer &noted = times.buffers[buffer % ASSAY_RING_BUFFERS];
  if (times.stream != ring_.all[slot].number + 1 || noted.buffer != buffer + 1)
    return {};
  return noted.logged;
}

uint64_t StreamTimes::end_of(uint32_t slot, uint64_t ns) const {
  const AssayRingStream &stream = ring_.all[slot];
  if (const Slot &times = slots_[slot]; times.stream == stream.number + 1 && times.gone_ns)
    ns = times.gone_ns;
  for (const AssayRingStream &other : ring_.all)
    if (const uint32_t kind = load_shared(other.kind);
        is_stream(kind) && !is_handlers(kind) && other.process == stream.process &&
        other.position == stream.position && other.number > stream.number && other.freed == 0)
      ns = std::min(ns, other.buffers[0].begin_ns);
  return ns;
}

} // namespace trace
