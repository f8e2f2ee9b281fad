// A trace in a file: the container of abi/container.h, kind ASSAY_FILE_TRACE, with the records TraceFile … TraceEnd.
#pragma once

#include "base/mapped_file.h"
#include "profile/container.h"
#include "trace/decode.h"
#include "trace/trace_data.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trace {

// Writes while the program runs: what was written stays, whatever happens then.
class TraceWriter : public TraceSink {
public:
  TraceWriter(const std::string &path, uint32_t process, const std::vector<std::string> &command);

  void file(const TracedFile &file, const MovedModule &moved) override;
  void mapping(const TracedMapping &mapping) override;
  void stream(const TracedStream &stream) override;
  void buffer(const TracedBuffer &buffer) override;
  void end(const TraceEnd &end) override;

  uint64_t written() const { return written_; }

private:
  profile::ContainerWriter writer_;
  std::vector<std::byte> compressed_;
  uint64_t written_ = 0;
};

// Reads the whole but what was logged, which replay() takes from the file piece by piece.
class Trace {
public:
  // Throws Failure for what is no trace. One that ends early is read as far as it goes, and says so in damage().
  explicit Trace(const std::string &path);

  const std::vector<std::string> &command() const {
    return command_;
  } // path of the executable, then its arguments
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

  // All accesses, each thread's in their order; threads take turns as their buffers were full. What a signal handler did comes where it
  // interrupted its thread. Throws Failure where the trace is damaged.
  void replay(profile::AccessSink &sink) const;

private:
  struct Buffer {
    uint32_t stream; // index in streams_
    bool is_compressed;
    uint64_t raw_bytes, offset;
    std::span<const std::byte> data;
  };
  void read(const profile::RecordView &record);

  base::MappedFile mapped_;
  std::vector<std::string> command_;
  std::vector<TracedFile> files_;
  std::vector<std::vector<MovedFunction>> functions_; // by place in files_
  std::vector<TracedMapping> mappings_;
  std::vector<TracedStream> streams_;
  std::vector<Buffer> buffers_;
  std::optional<TraceEnd> end_;
  GroupDecoder decoder_;
  std::vector<Group> groups_of_file_; // of the file that is being read
  std::string damage_;
  uint64_t logged_bytes_ = 0;
};

} // namespace trace
