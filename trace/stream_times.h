// When the threads of a recording logged how much: their order is told from it (by_time.cc). The
// position is in a thread's own memory; where that may not be read, its buffers' times are all that
// is known. A slot is a stream's place in the ring.
#pragma once

#include "abi/trace_ring.h"
#include "trace/trace_data.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trace {

// The kind of a slot: a stream's, a handler's stream's.
inline bool is_stream(uint32_t kind) {
  return kind >= ASSAY_STREAM_groups && kind <= ASSAY_STREAM_handler_accesses;
}
inline bool is_handlers(uint32_t kind) {
  return kind == ASSAY_STREAM_handler_groups || kind == ASSAY_STREAM_handler_accesses;
}

class StreamTimes {
public:
  // Nanoseconds are of CLOCK_MONOTONIC; those that are given out count from `begin_ns`.
  StreamTimes(const AssayTraceRing &ring, uint64_t begin_ns)
      : ring_(ring), begin_ns_(begin_ns), slots_(ASSAY_RING_STREAMS) {}

  // Notes how far threads have logged, if the last time is about a millisecond ago, and there are several.
  void note(uint64_t ns);
  bool has_several_threads() const { return has_several_threads_; }

  // How many bytes of a buffer its thread has logged by now; nothing if its position is elsewhere, or cannot be read.
  std::optional<uint64_t> bytes_in(uint32_t slot, uint32_t buffer) const;
  // What was noted while it was filled.
  std::span<const LoggedBy> of(uint32_t slot, uint32_t buffer) const;
  // When a stream ended whose thread is gone, at the latest: when it was not found any more, when another thread logged
  // from the same place, or `ns`. Not counted from the begin.
  uint64_t end_of(uint32_t slot, uint64_t ns) const;

private:
  void note(uint32_t slot, uint64_t ns);

  const AssayTraceRing &ring_;
  const uint64_t begin_ns_;
  struct Slot {
    uint32_t stream = 0;  // its number plus 1
    uint64_t gone_ns = 0; // since when its thread has not been found there
    struct OfBuffer {
      uint32_t buffer = 0; // its number plus 1
      std::vector<LoggedBy> logged;
    };
    std::array<OfBuffer, ASSAY_RING_BUFFERS> buffers;
  };
  std::vector<Slot> slots_;
  uint64_t noted_ns_ = 0;
  bool has_several_threads_ = false;
};

} // namespace trace
