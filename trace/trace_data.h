// What a trace says besides what was logged: files, groups, functions, mappings, streams. The form
// in which groups and functions are stored is docs/trace-format.md.
#pragma once

#include "profile/access_stream.h"
#include "trace/groups.h"
#include "trace/moved_code.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trace {

struct TracedFile {
  uint32_t number = 0; // from 1
  std::string path;
  std::vector<uint8_t> build_id;
  bool is_moved = false;
  std::string why_not;
  uint32_t first_group = 0, groups = 0, singles = 0;
};

struct TracedMapping {
  uint32_t program = 0, file = 0; // a process has another program after exec
  uint64_t bias = 0, time_ns = 0;
};

struct TracedStream {
  uint32_t number = 0, kind = 0, process = 0, thread = 0, parent = 0;
  uint32_t pair = 0;    // of accesses: number of the stream of the same thread's groups
  uint32_t program = 0; // whose mappings hold
  uint64_t parent_bytes = 0, thread_base = 0;
  bool in_handler() const { return kind >= ASSAY_STREAM_handler_groups; }
  profile::AccessOrigin origin() const { return {process, thread, number, in_handler()}; }
  // What it interrupted has surely gone on behind it. Not known of a handler that logged more than a buffer.
  bool has_returned() const { return kind >= ASSAY_STREAM_returned_groups; }
  bool is_of_singles() const {
    return kind == ASSAY_STREAM_accesses || kind == ASSAY_STREAM_handler_accesses ||
           kind == ASSAY_STREAM_returned_accesses;
  }
};

// So many bytes of a buffer had been logged then.
struct LoggedBy {
  uint64_t bytes = 0, ns = 0;
};

// A part of a stream that was filled at once.
struct TracedBuffer {
  uint32_t stream = 0;
  uint64_t offset =
      0; // in the stream: buffers of ASSAY_RING_BUFFER_BYTES, of which each may end early
  uint64_t begin_ns = 0, end_ns = 0;
  std::span<const std::byte> data;
  std::span<const LoggedBy> times; // in between, where they are known; both go up
};

struct TraceEnd {
  uint64_t duration_ns = 0, logged_bytes = 0, untraced_threads = 0;
  int wait_status = 0;
  bool was_stopped = false;
  // Whether its threads were ended anywhere, not by a call of theirs.
  bool was_killed() const { return was_stopped || (wait_status & 0x7f) != 0; }
};

// Takes what a recording yields, in an order in which it can be understood: a file before its
// mappings, a stream before its buffers, the buffers of a stream in order, a handler's before the
// buffer of the stream that it interrupted. One thread calls; references and spans hold until the
// call returns. A sink may throw: the recording ends, and end() does not come.
class TraceSink {
public:
  virtual ~TraceSink() = default;
  virtual void file(const TracedFile &file, const MovedModule &moved) = 0;
  virtual void mapping(const TracedMapping &mapping) = 0;
  virtual void stream(const TracedStream &stream) = 0;
  virtual void buffer(const TracedBuffer &buffer) = 0;
  virtual void end(const TraceEnd &end) = 0;
};

// Groups, skeletons and functions as bytes, and back. Reading throws Failure for bytes that are none.
std::vector<std::byte> encode(std::span<const Group> groups);
std::vector<std::byte> encode(std::span<const Skeleton> skeletons);
std::vector<std::byte> encode(std::span<const MovedFunction> functions);
std::vector<std::byte> encode(std::span<const LoggedBy> times);
std::vector<Group> decode_groups(std::span<const std::byte> bytes, uint32_t count);
std::vector<Skeleton> decode_skeletons(std::span<const std::byte> bytes, uint32_t count);
std::vector<MovedFunction> decode_functions(std::span<const std::byte> bytes, uint32_t count);
std::vector<LoggedBy> decode_times(std::span<const std::byte> bytes, uint32_t count);

} // namespace trace
