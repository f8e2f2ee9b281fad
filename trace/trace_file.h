// A trace in a file: the container of abi/container.h, kind ASSAY_FILE_TRACE, with the records TraceFile … TraceEnd.
#pragma once

#include "base/mapped_file.h"
#include "profile/container.h"
#include "trace/decode.h"
#include "trace/trace_data.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trace {

// Takes what each thread logged, one thread after the other.
class LoggedSink {
public:
  virtual ~LoggedSink() = default;
  // A thread's, or a handler's within the stream that it interrupted, up to its end(). A handler
  // that interrupted it after its last byte comes behind its end().
  virtual void begin(const TracedStream &stream) = 0;
  virtual void logged(const TracedStream &stream, std::span<const std::byte> bytes) = 0;
  // `went_on`: until the program ended; else what follows from the last bytes is not known.
  virtual void end(const TracedStream &stream, bool went_on) = 0;
};

// What is logged of a file, and what it means.
struct FileDefinitions {
  std::vector<Skeleton> skeletons;
  std::vector<Group> groups;
};

// In which order threads take turns.
enum class ThreadOrder : uint8_t {
  by_buffers, // as their buffers were full
  by_time,    // as they logged, as far as that is known: a plausible order, not the order
};

// Reads the whole but what was logged, which replay() takes from the file piece by piece.
class Trace {
public:
  // Throws Failure for what is no trace. One that ends early is read as far as it goes, and says so in damage().
  explicit Trace(const std::string &path);

  const std::vector<std::string> &command() const {
    return command_;
  } // path of the executable, then its arguments
  const std::vector<std::string> &parts() const {
    return parts_;
  } // of TraceWriter::parts; empty: all was recorded
  const std::vector<TracedFile> &files() const { return files_; }
  const std::vector<MovedFunction> &functions_of(size_t file) const { return functions_[file]; }
  const std::vector<TracedStream> &streams() const { return streams_; }
  const std::vector<TracedMapping> &mappings() const { return mappings_; }
  const std::optional<TraceEnd> &end() const { return end_; }
  const std::string &damage() const { return damage_; }
  uint64_t file_bytes() const { return mapped_.bytes().size(); }
  uint64_t logged_bytes() const { return logged_bytes_; }

  const std::vector<profile::AccessSite> &sites() const { return decoder_.sites(); }
  const TracedFile *file(uint32_t number) const;

  // All accesses, each thread's in their order. What a signal handler did comes where it
  // interrupted its thread. Throws Failure where the trace is damaged.
  // Returns what they follow from.
  LoggedCounts replay(profile::AccessSink &sink, ThreadOrder order = ThreadOrder::by_buffers) const;
  // The same, one thread after the other.
  void replay_by_thread(profile::AccessSink &sink) const;
  void logged_by_thread(LoggedSink &sink) const;

  // Of a file, by its place in files(); reads them again.
  FileDefinitions definitions_of(size_t file) const;
  uint64_t bias_of(uint32_t program, uint32_t file) const;
  // By number: whether it was logged at least once.
  std::vector<bool> executed_groups() const;

private:
  struct Buffer {
    uint32_t stream; // index in streams_
    bool is_compressed;
    uint64_t raw_bytes, offset, begin_ns, end_ns;
    std::span<const std::byte> data;
    std::vector<LoggedBy> times;
  };
  class ByThread;
  class ByTime;
  class Decoded;
  std::vector<std::byte> contents_of(const Buffer &buffer) const;
  TracedBuffer traced(const Buffer &buffer, std::span<const std::byte> contents) const;
  void read(const profile::RecordView &record);
  void read_file(const profile::RecordView &record);
  void read_buffer(const profile::RecordView &record);
  LoggedCounts replay_by_time(profile::AccessSink &sink) const;

  base::MappedFile mapped_;
  std::vector<std::string> command_, parts_;
  std::vector<TracedFile> files_;
  std::vector<std::vector<MovedFunction>> functions_; // by place in files_
  std::vector<TracedMapping> mappings_;
  std::vector<TracedStream> streams_;
  std::vector<Buffer> buffers_;
  std::map<uint32_t, std::vector<LoggedBy>> times_of_next_; // buffer, by number of the stream
  std::optional<TraceEnd> end_;
  GroupDecoder decoder_;
  std::string damage_;
  uint64_t logged_bytes_ = 0;
  uint32_t groups_read_ = 0;
};

} // namespace trace
