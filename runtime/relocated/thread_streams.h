// The streams of the calling thread, one for each log: shared by streams.cc and handler_streams.cc.
#pragma once

#include "runtime/relocated/relocated.h"

namespace assay::relocated {

constexpr uint32_t kNoStream = UINT32_MAX;
constexpr int kLogs = 2;

struct ThreadStreams {
  uint32_t after_stream[kLogs] = {}; // the stream plus 1; 0: it has none
  uint32_t gate[kLogs] = {};         // what it was when the stream began
  uint32_t process = 0, thread = 0;  // whose streams these are; 0: nobody's yet
  bool in_handler = false;
  bool is_paused = false;                 // what it executes is ours
  bool is_counted_untraced = false;       // it found no stream
  uint32_t parent[kLogs] = {};            // number of the stream that the handler interrupted
  uint64_t parent_bytes[kLogs] = {};      // logged there
  uint32_t after_interrupted[kLogs] = {}; // the stream that a handler interrupted last, plus 1
  uint64_t ending_frame = 0;              // of the handler that was last at ending streams
};
extern constinit thread_local ThreadStreams mine [[gnu::tls_model("initial-exec")]];

extern uint32_t forks; // from the first process to this one
// What nobody reads. Twice: nobody checks for up to the slack behind a limit.
extern char scratch[2 * ASSAY_RING_SLACK];

inline uint32_t stream_of(int log) {
  return mine.after_stream[log] - 1; // kNoStream, if it has none
}
inline void set_stream(int log, uint32_t stream) {
  mine.after_stream[log] = stream + 1;
}

inline AssayLogPosition &position(AssayThreadLog &of, int log) {
  return log == 0 ? of.groups : of.accesses;
}
inline AssayLogPosition &position(int log) {
  return position(thread_log, log);
}
inline char *buffer_at(uint32_t stream, uint32_t buffer) {
  return (char *)ring + assay_ring_buffer(stream, buffer);
}

// This process has a copy of its parent's memory, and has not begun its own streams.
bool is_copy();
void begin_process();
void forget_streams();
// From now on it logs into the scratch area.
void go_untraced(int log);
// How much the thread's stream has logged. The position may lie in the buffer before the one that
// comes next: a handler interrupts next_buffer() as well.
uint64_t bytes_of(int log);
// Ends it with so many bytes, by bytes_of(). It may be another thread's from then on.
void end_stream(AssayRingStream &stream, uint64_t logged);
// Ends the thread's stream, if it has one, with what it has logged.
void end_own_stream(int log);

} // namespace assay::relocated
