// A buffer is compressed by itself, so that a trace can be read from any of them, and a damaged one
// costs no other. One that does not shrink is stored as it is. Groups, skeletons and functions of a
// file are cut into records of a limited number of them.
//
// Programs log faster than one thread compresses, and wait for buffers that are given back. So a buffer
// is copied, which takes a tenth of that time or less, and other threads do the rest.

#include "trace/trace_writer.h"

#include "base/divided_work.h"
#include "base/fail.h"

#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace trace {
namespace {

namespace fs = std::filesystem;

constexpr int kLevel = 1;
// More than that compress what the fastest program logs.
constexpr unsigned kMaxThreads = 8;
constexpr size_t kMaxWaiting =
    16; // buffers, of 256 KiB at most; who waits for half of them waits some ms
// What is shorter is compressed at once: handing it to a thread takes as long.
constexpr size_t kShort = 4096;
constexpr size_t kGroupsOfRecord = 1 << 14, kFunctionsOfRecord = 1 << 12,
                 kSkeletonsOfRecord = 1 << 8;

uint64_t unix_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

bool is_regular(const std::string &path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Of the calling thread; null if there is no memory for one.
ZSTD_CCtx *compression_context() {
  thread_local const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx *)> context(ZSTD_createCCtx(),
                                                                                 ZSTD_freeCCtx);
  return context.get();
}

} // namespace

struct TraceWriter::Buffer {
  AssayTraceBuffer about = {};
  std::vector<LoggedBy> times;
  std::vector<std::byte> logged, room; // for what is compressed
  std::span<const std::byte> stored;   // in one of them
};

TraceWriter::~TraceWriter() = default;

TraceWriter::TraceWriter(const std::string &path, uint32_t process,
                         const std::vector<std::string> &command)
    : path_(path), is_new_(access(path.c_str(), F_OK) != 0),
      written_(is_regular(path) ? path + ".new" : path),
      writer_(written_, process, unix_ns(), ASSAY_FILE_TRACE, base::Written::as_it_grows),
      work_(std::min(base::usable_cpus(), kMaxThreads), kMaxWaiting) {
  AssayProgram program = {};
  program.pid = process;
  program.start_unix_ns = unix_ns();
  writer_.record(ASSAY_RECORD_Program, program, profile::string_tail(command));
  writer_.flush();
}

void TraceWriter::parts(const std::vector<std::string> &options) {
  work_.finish();
  writer_.record(ASSAY_RECORD_TraceParts, AssayTraceParts{static_cast<uint32_t>(options.size()), 0},
                 profile::string_tail(options));
  writer_.flush();
}

void TraceWriter::discard() {
  std::error_code ignored;
  if (is_new_ || written_ != path_)
    fs::remove(written_, ignored);
}

void TraceWriter::file(const TracedFile &file, const MovedModule &moved) {
  work_.finish();
  if (written_ != path_) {
    std::error_code error;
    fs::rename(written_, path_, error);
    if (error)
      base::fail("{}: the older trace cannot be replaced: {}; choose another folder with -o", path_,
                 error.message());
    written_ = path_;
  }
  const std::span<const Group> groups = moved.groups;
  const std::span<const Skeleton> skeletons = moved.skeletons;
  const std::span<const MovedFunction> functions = moved.functions;
  AssayTraceFile record = {};
  record.file = file.number;
  record.is_moved = file.is_moved;
  record.first_group = file.first_group;
  record.groups = file.groups;
  record.singles = file.singles;
  record.build_id_size = static_cast<uint32_t>(std::min<size_t>(file.build_id.size(), 32));
  std::memcpy(&record.build_id0, file.build_id.data(), record.build_id_size);
  writer_.record(ASSAY_RECORD_TraceFile, record,
                 profile::string_tail(std::vector{file.path, file.why_not}));
  for (size_t at = 0; at < skeletons.size(); at += kSkeletonsOfRecord) {
    const auto part = skeletons.subspan(at, std::min(kSkeletonsOfRecord, skeletons.size() - at));
    writer_.record(ASSAY_RECORD_TraceSkeletons,
                   AssayTraceSkeletons{file.number, static_cast<uint32_t>(part.size())},
                   encode(part));
  }
  for (size_t at = 0; at < groups.size(); at += kGroupsOfRecord) {
    const auto part = groups.subspan(at, std::min(kGroupsOfRecord, groups.size() - at));
    writer_.record(ASSAY_RECORD_TraceGroups,
                   AssayTraceGroups{file.first_group + static_cast<uint32_t>(at),
                                    static_cast<uint32_t>(part.size())},
                   encode(part));
  }
  for (size_t at = 0; at < functions.size(); at += kFunctionsOfRecord) {
    const auto part = functions.subspan(at, std::min(kFunctionsOfRecord, functions.size() - at));
    writer_.record(ASSAY_RECORD_TraceFunctions,
                   AssayTraceFunctions{file.number, static_cast<uint32_t>(part.size())},
                   encode(part));
  }
  writer_.flush();
}

void TraceWriter::mapping(const TracedMapping &mapping) {
  work_.add([this, mapping] {
    writer_.record(ASSAY_RECORD_TraceMapping,
                   AssayTraceMapping{mapping.program, mapping.file, mapping.bias, mapping.time_ns});
  });
}

void TraceWriter::stream(const TracedStream &stream) {
  work_.add([this, stream] {
    writer_.record(ASSAY_RECORD_TraceStream,
                   AssayTraceStream{stream.number, stream.kind, stream.process, stream.thread,
                                    stream.parent, stream.program, stream.parent_bytes,
                                    stream.thread_base});
  });
}

void TraceWriter::buffer(const TracedBuffer &buffer) {
  logged_bytes_ += buffer.data.size();
  streams_.insert(buffer.stream);
  const std::shared_ptr<Buffer> copy = buffers_.take();
  copy->about = {buffer.stream, 0, buffer.data.size(), buffer.offset, buffer.begin_ns,
                 buffer.end_ns};
  copy->times.assign(buffer.times.begin(), buffer.times.end());
  copy->logged.assign(buffer.data.begin(), buffer.data.end());
  const auto write_it = [this, copy] {
    write(*copy);
    buffers_.give_back(copy);
  };
  if (copy->logged.size() > kShort) {
    work_.add([copy] { compress(*copy); }, write_it);
    return;
  }
  compress(*copy);
  work_.add(write_it);
}

void TraceWriter::compress(Buffer &buffer) {
  const std::vector<std::byte> &logged = buffer.logged;
  if (const size_t bound = ZSTD_compressBound(logged.size()); buffer.room.size() < bound)
    buffer.room.resize(bound);
  ZSTD_CCtx *context = compression_context();
  const size_t size = context ? ZSTD_compressCCtx(context, buffer.room.data(), buffer.room.size(),
                                                  logged.data(), logged.size(), kLevel)
                              : logged.size();
  buffer.about.compression = !ZSTD_isError(size) && size < logged.size();
  buffer.stored =
      buffer.about.compression ? std::span<const std::byte>(buffer.room).first(size) : logged;
}

void TraceWriter::write(const Buffer &buffer) {
  if (!buffer.times.empty())
    writer_.record(ASSAY_RECORD_TraceTimes,
                   AssayTraceTimes{buffer.about.stream, static_cast<uint32_t>(buffer.times.size())},
                   encode(buffer.times));
  writer_.record(ASSAY_RECORD_TraceBuffer, buffer.about, buffer.stored);
  writer_.flush();
}

void TraceWriter::end(const TraceEnd &end) {
  work_.finish();
  writer_.record(ASSAY_RECORD_TraceEnd,
                 AssayTraceEnd{end.duration_ns, static_cast<uint32_t>(end.wait_status),
                               end.was_stopped ? ASSAY_TRACE_STOPPED : ASSAY_TRACE_ENDED,
                               end.untraced_threads, end.logged_bytes});
  writer_.commit();
}

} // namespace trace
