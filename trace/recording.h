// The tool's side of a recording: makes the memory that it shares with the program
// (abi/trace_ring.h), moves the code of files as processes load them, and hands what threads have
// logged to a sink.
#pragma once

#include "abi/trace_ring.h"
#include "base/shared_memory.h"
#include "trace/moved_cache.h"
#include "trace/trace_data.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace trace {

struct RecordingSettings {
  std::filesystem::path folder;     // where moved code is written while the recording lasts
  std::filesystem::path cache;      // where moved code is kept for other recordings; empty: nowhere
  uint32_t log = ASSAY_LOG_groups;  // sum of ASSAY_LOG_*
  bool plans = true;                // MoveSettings::plans
  std::vector<std::string> only;    // names of functions; all, if empty
  std::vector<std::string> modules; // names of files, without folders; all, if empty
  // Asked again and again with the time since the program's begin, less what moving code has taken:
  // odd, nothing is to be logged; another number, streams are to begin anew. Threads notice it
  // soon: loops log in each iteration. Empty: all is logged.
  std::function<uint32_t(uint64_t elapsed_ns)> gate;
  // Instead of that: marks of the program (assay/annotate.h) at which threads begin to log, and
  // end. Empty: from the begin, to the end.
  std::string start_mark, stop_mark;
  // Told before a file is moved, which the program waits for; bytes of code. May be empty.
  std::function<void(const std::string &path, uint64_t code)> moves;
};

class Recording {
public:
  Recording(const RecordingSettings &settings, TraceSink &sink);
  ~Recording();
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;

  // Of the program to be recorded: name and value.
  std::pair<std::string, std::string> environment() const;

  // Serves requests, and takes what is there; waits for at most so long if there is nothing.
  void poll(std::chrono::milliseconds most);
  // Nothing is recorded from now on; programs that still run go on.
  void stop();
  // Takes what is left; the program has ended.
  void finish(int wait_status);

  struct Progress {
    uint64_t bytes = 0, files = 0, moved = 0, streams = 0;
  };
  const Progress &progress() const { return progress_; }

  // Names of the executables that were traced: programs that these start may be out of reach.
  const std::set<std::string> &programs() const { return programs_; }

  // What was asked for by name, and no file that was loaded had, or was.
  std::vector<std::string> missing_functions() const;
  std::vector<std::string> missing_modules() const;

  // Files that could not be read, or whose moved code could not be written, and why.
  struct Untraced {
    std::string name, why;
  };
  const std::vector<Untraced> &untraced_files() const { return untraced_files_; }

private:
  struct KnownFile {
    TracedFile file;
    std::filesystem::path code; // empty: nothing was moved
    bool is_given_up = false;   // who asked ended meanwhile: who asks next starts anew
  };
  bool take_all();
  // For processes that may make no system call.
  void show_poll();
  void wait_for_news(uint32_t seen, std::chrono::nanoseconds most);
  void give_back_request();
  void give_back_claims();
  void answer();
  KnownFile &known_file(const std::string &path, bool is_main, uint32_t process);
  void move(KnownFile &known, const std::string &path, uint32_t process);
  MovedModule moved_code_of(const std::string &path, const std::string &name, uint32_t process);
  void remove_moved_code();
  struct Taken { // of a stream: what it had handed over, and whether it had ended by then
    uint32_t filled = 0;
    bool has_ended = false;
  };
  Taken look_at(uint32_t slot) const;
  bool take(uint32_t slot, const Taken &seen);
  std::optional<uint64_t> bytes_in(uint32_t slot, uint32_t buffer) const;
  uint64_t end_of(uint32_t slot) const;
  void note_times();
  void note_time(uint32_t slot, uint64_t ns);
  std::span<const LoggedBy> times_of(uint32_t slot, uint32_t buffer);
  bool is_gone(const AssayRingStream &stream) const;
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
  uint64_t begin_ns_ = 0;
  uint64_t program_begin_ns_ = 0;          // when the first process had come; 0: none has
  uint64_t moving_ns_ = 0;                 // since then, while a process waited for moved code
  MovedCache cache_;                       // of nothing where functions are chosen
  std::map<std::string, KnownFile> files_; // by what tells files apart
  std::vector<Untraced> untraced_files_;
  std::set<std::string> programs_;
  std::set<std::string> found_functions_, found_modules_; // of those that were asked for
  std::vector<uint32_t> known_streams_; // by slot: number of the stream that was announced, plus 1
  struct Times {                        // when a stream logged how much
    uint32_t stream = 0;                // its number plus 1
    uint64_t gone_ns = 0;               // since when its thread has not been found there
    struct OfBuffer {
      uint32_t buffer = 0; // its number plus 1
      std::vector<LoggedBy> logged;
    };
    std::array<OfBuffer, ASSAY_RING_BUFFERS> buffers;
  };
  std::vector<Times> times_; // by slot
  uint64_t noted_ns_ = 0;
  bool has_several_threads_ = false;
  uint32_t next_group_ = 0, next_file_ = 1;
  std::chrono::steady_clock::time_point looked_ = {};
  bool looks_for_gone_ =
      false; // ten times a second is often enough, but where a thread waits for a stream
  uint32_t answered_ = 0; // of AssayTraceRing::wanted
  bool has_ended_ = false;
  std::vector<std::byte> copy_; // of a buffer
  Progress progress_;
};

} // namespace trace
