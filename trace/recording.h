// The tool's side of a recording: makes the memory that it shares with the program
// (abi/trace_ring.h), answers processes that ask for moved code, and hands what threads have logged
// to a sink.
#pragma once

#include "abi/trace_ring.h"
#include "base/shared_memory.h"
#include "trace/moved_files.h"
#include "trace/recording_settings.h"
#include "trace/stream_times.h"
#include "trace/trace_data.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trace {

// Polled until the program has ended, then finished. What the sink throws passes through poll() and
// finish(); after that only stop() may be called.
class Recording {
public:
  // The sink must outlive this.
  Recording(const RecordingSettings &settings, TraceSink &sink);
  ~Recording();
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;

  // The variable that the recorded program must have in its environment: name and value.
  std::pair<std::string, std::string> environment() const;

  // Serves requests, and takes what is there; waits for at most so long if there is nothing.
  void poll(std::chrono::milliseconds most);
  // Nothing is recorded from now on; programs that still run go on.
  void stop();
  // Takes what is left; the program has ended.
  void finish(int wait_status);

  struct Progress {
    uint64_t files = 0;                            // that were asked for, moved or not
    uint64_t moved_functions = 0, moved_files = 0; // and files that have such a function
    uint32_t untraced_threads = 0;                 // and handlers, for which there was no stream
    size_t running = 0; // processes that ran on when the recording was finished
  };
  Progress progress() const;
  // What was moved, and what was not, and why.
  const MovedFiles &files() const { return files_; }

private:
  bool take_all();
  // For processes that may make no system call.
  void show_poll();
  void wait_for_news(uint32_t seen, std::chrono::nanoseconds most);
  void give_back_request();
  void give_back_claims();
  void answer();
  struct Taken { // of a stream: what it had handed over, and whether it had ended by then
    uint32_t filled = 0;
    bool has_ended = false;
  };
  Taken look_at(uint32_t slot) const;
  bool take(uint32_t slot, const Taken &seen);
  bool is_gone(const AssayRingStream &stream) const;
  size_t running_processes();
  void begin_stream(uint32_t slot);
  bool end_stream(uint32_t slot, uint32_t last);
  void hand_over(uint32_t slot, uint32_t buffer, std::span<const std::byte> data);
  std::span<const std::byte> copy_of(std::span<const std::byte> buffer);
  std::byte *buffer_of(uint32_t slot, uint32_t buffer);
  uint64_t since_begin(uint64_t ns) const { return ns > begin_ns_ ? ns - begin_ns_ : 0; }
  uint64_t program_time_ns() const;

  RecordingSettings settings_;
  TraceSink &sink_;
  base::SharedMemory memory_{"assay-trace", ASSAY_RING_BYTES};
  AssayTraceRing *const ring_ = reinterpret_cast<AssayTraceRing *>(memory_.data());
  const uint64_t begin_ns_;
  uint64_t program_begin_ns_ = 0; // when the first process had come; 0: none has
  uint64_t moving_ns_ = 0;        // since then, while a process waited for moved code
  MovedFiles files_{settings_, sink_};
  StreamTimes times_{*ring_, begin_ns_};
  std::vector<uint32_t> known_streams_; // by slot: number of the stream that was announced, plus 1
  std::chrono::steady_clock::time_point looked_ = {};
  bool looks_for_gone_ =
      false; // ten times a second is often enough, but where a thread waits for a stream
  uint32_t answered_ = 0; // of AssayTraceRing::wanted
  bool has_ended_ = false;
  size_t running_ = 0;          // processes, when it ended
  std::vector<std::byte> copy_; // of a buffer
  uint64_t bytes_ = 0;
};

} // namespace trace
