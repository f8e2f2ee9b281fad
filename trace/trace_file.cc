// A buffer is compressed by itself, so that a trace can be read from any of them, and a damaged one costs no other.
//
// A buffer that does not shrink is stored as it is. Groups, skeletons and functions of a file are
// cut into records of a limited number of them. The file is mapped, and of buffers only their
// places are kept; replay() decompresses one at a time, so a trace may be larger than memory.
//
// What a record refers to stands before it; if it does not, the trace is damaged. A number of a
// stream means the last one so far that has it.

#include "trace/trace_file.h"

#include "base/fail.h"
#include "trace/stream_replay.h"

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
constexpr uint32_t kStopped = 1; // AssayTraceEnd::why
constexpr size_t kGroupsOfRecord = 1 << 14, kFunctionsOfRecord = 1 << 12,
                 kSkeletonsOfRecord = 1 << 8;

uint64_t unix_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

std::vector<std::string> strings_of(std::span<const std::byte> tail, const char *what) {
  std::vector<std::string> strings;
  for (base::ByteReader reader(tail, what); !reader.at_end();)
    strings.emplace_back(reader.zero_terminated());
  return strings;
}

bool is_regular(const std::string &path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

} // namespace

TraceWriter::TraceWriter(const std::string &path, uint32_t process,
                         const std::vector<std::string> &command)
    : path_(path), is_new_(access(path.c_str(), F_OK) != 0),
      written_(is_regular(path) ? path + ".new" : path),
      writer_(written_, process, unix_ns(), ASSAY_FILE_TRACE, base::Written::as_it_grows) {
  AssayProgram program = {};
  program.pid = process;
  program.start_unix_ns = unix_ns();
  writer_.record(ASSAY_RECORD_Program, program, profile::string_tail(command));
  writer_.flush();
}

void TraceWriter::parts(const std::vector<std::string> &options) {
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
  writer_.record(ASSAY_RECORD_TraceMapping,
                 AssayTraceMapping{mapping.program, mapping.file, mapping.bias, mapping.time_ns});
}

void TraceWriter::stream(const TracedStream &stream) {
  writer_.record(ASSAY_RECORD_TraceStream,
                 AssayTraceStream{stream.number, stream.kind, stream.process, stream.thread,
                                  stream.parent, stream.program, stream.parent_bytes,
                                  stream.thread_base});
}

void TraceWriter::buffer(const TracedBuffer &buffer) {
  compressed_.resize(ZSTD_compressBound(buffer.data.size()));
  const size_t size = ZSTD_compress(compressed_.data(), compressed_.size(), buffer.data.data(),
                                    buffer.data.size(), kLevel);
  const bool is_compressed = !ZSTD_isError(size) && size < buffer.data.size();
  const std::span<const std::byte> data =
      is_compressed ? std::span<const std::byte>(compressed_).first(size) : buffer.data;
  if (!buffer.times.empty())
    writer_.record(ASSAY_RECORD_TraceTimes,
                   AssayTraceTimes{buffer.stream, static_cast<uint32_t>(buffer.times.size())},
                   encode(buffer.times));
  writer_.record(ASSAY_RECORD_TraceBuffer,
                 AssayTraceBuffer{buffer.stream, is_compressed, buffer.data.size(), buffer.offset,
                                  buffer.begin_ns, buffer.end_ns},
                 data);
  writer_.flush();
}

void TraceWriter::end(const TraceEnd &end) {
  writer_.record(ASSAY_RECORD_TraceEnd,
                 AssayTraceEnd{end.duration_ns, static_cast<uint32_t>(end.wait_status),
                               end.was_stopped ? kStopped : 0, end.untraced_threads,
                               end.logged_bytes});
  writer_.commit();
}

Trace::Trace(const std::string &path) : mapped_(path) {
  profile::ContainerReader reader(mapped_.bytes(), path, ASSAY_FILE_TRACE);
  profile::RecordView record;
  try {
    while (reader.next(record))
      read(record);
  } catch (const base::Failure &failure) {
    base::fail("{}: the trace is damaged: {}", path, failure.what());
  }
  damage_ = reader.damage();
  if (files_.empty())
    base::fail("{}: the trace has no files: the program was not reached; `assay doctor` says why",
               path);
}

void Trace::read(const profile::RecordView &record) {
  switch (record.kind) {
  case ASSAY_RECORD_Program: command_ = strings_of(record.tail, "the command of the trace"); break;
  case ASSAY_RECORD_TraceParts: parts_ = strings_of(record.tail, "what was to be recorded"); break;
  case ASSAY_RECORD_TraceFile: read_file(record); break;
  case ASSAY_RECORD_TraceGroups: {
    const auto from = profile::fixed_part<AssayTraceGroups>(record);
    if (files_.empty() || from.first < files_.back().first_group ||
        uint64_t{from.first} + from.groups >
            uint64_t{files_.back().first_group} + files_.back().groups)
      base::fail("groups {} and following belong to no file", from.first);
    if (from.first != groups_read_)
      base::fail("groups {} and following do not follow group {}", from.first, groups_read_);
    groups_read_ += from.groups;
    TracedFile part = files_.back();
    part.first_group = from.first;
    decoder_.add(part, decode_groups(record.tail, from.groups));
    break;
  }
  case ASSAY_RECORD_TraceSkeletons: {
    const auto from = profile::fixed_part<AssayTraceSkeletons>(record);
    if (files_.empty() || from.file != files_.back().number)
      base::fail("skeletons of file {} do not follow it", from.file);
    decoder_.add_skeletons(files_.back(), decode_skeletons(record.tail, from.skeletons));
    break;
  }
  case ASSAY_RECORD_TraceFunctions: {
    const auto from = profile::fixed_part<AssayTraceFunctions>(record);
    if (files_.empty() || from.file != files_.back().number)
      base::fail("functions of file {} do not follow it", from.file);
    auto functions = decode_functions(record.tail, from.functions);
    functions_.back().insert(functions_.back().end(), std::make_move_iterator(functions.begin()),
                             std::make_move_iterator(functions.end()));
    break;
  }
  case ASSAY_RECORD_TraceMapping: {
    const auto from = profile::fixed_part<AssayTraceMapping>(record);
    mappings_.push_back({from.program, from.file, from.bias, from.time_ns});
    decoder_.add(mappings_.back());
    break;
  }
  case ASSAY_RECORD_TraceStream: {
    const auto from = profile::fixed_part<AssayTraceStream>(record);
    streams_.push_back({from.stream, from.kind, from.process, from.thread, from.parent, 0,
                        from.program, from.parent_bytes, from.thread_base});
    break;
  }
  case ASSAY_RECORD_TraceTimes: {
    const auto from = profile::fixed_part<AssayTraceTimes>(record);
    times_of_next_[from.stream] = decode_times(record.tail, from.times);
    break;
  }
  case ASSAY_RECORD_TraceBuffer: read_buffer(record); break;
  case ASSAY_RECORD_TraceEnd: {
    const auto from = profile::fixed_part<AssayTraceEnd>(record);
    end_ = TraceEnd{from.duration_ns, from.logged_bytes, from.untraced_threads,
                    static_cast<int>(from.wait_status), (from.why & kStopped) != 0};
    break;
  }
  default: break;
  }
}

void Trace::read_file(const profile::RecordView &record) {
  const auto from = profile::fixed_part<AssayTraceFile>(record);
  base::ByteReader strings(record.tail, "the path of a file");
  TracedFile &file = files_.emplace_back();
  file.number = from.file;
  file.path = strings.zero_terminated();
  file.why_not = strings.zero_terminated();
  file.is_moved = from.is_moved;
  file.first_group = from.first_group;
  file.groups = from.groups;
  file.singles = from.singles;
  uint8_t build_id[32];
  std::memcpy(build_id, &from.build_id0, sizeof build_id);
  file.build_id.assign(build_id,
                       build_id + std::min<uint32_t>(from.build_id_size, sizeof build_id));
  functions_.emplace_back();
}

void Trace::read_buffer(const profile::RecordView &record) {
  const auto from = profile::fixed_part<AssayTraceBuffer>(record);
  const auto stream =
      std::find_if(streams_.rbegin(), streams_.rend(),
                   [&](const TracedStream &each) { return each.number == from.stream; });
  if (stream == streams_.rend() || from.raw_bytes > ASSAY_RING_BUFFER_BYTES ||
      from.compression > 1 || (!from.compression && from.raw_bytes != record.tail.size()))
    base::fail("a buffer of stream {} makes no sense", from.stream);
  buffers_.push_back({static_cast<uint32_t>(streams_.rend() - stream - 1),
                      from.compression != 0,
                      from.raw_bytes,
                      from.offset,
                      from.begin_ns,
                      from.end_ns,
                      record.tail,
                      {}});
  if (auto times = times_of_next_.extract(from.stream))
    buffers_.back().times = std::move(times.mapped());
  logged_bytes_ += from.raw_bytes;
}

const TracedFile *Trace::file(uint32_t number) const {
  for (const TracedFile &file : files_)
    if (file.number == number)
      return &file;
  return nullptr;
}

std::vector<std::byte> Trace::contents_of(const Buffer &buffer) const {
  if (!buffer.is_compressed)
    return {buffer.data.begin(), buffer.data.end()};
  std::vector<std::byte> raw(buffer.raw_bytes);
  const size_t size =
      ZSTD_decompress(raw.data(), raw.size(), buffer.data.data(), buffer.data.size());
  if (ZSTD_isError(size) || size != buffer.raw_bytes)
    base::fail("the trace is damaged: a buffer of stream {} cannot be decompressed",
               streams_[buffer.stream].number);
  return raw;
}

TracedBuffer Trace::traced(const Buffer &buffer, std::span<const std::byte> contents) const {
  return {streams_[buffer.stream].number,
          buffer.offset,
          buffer.begin_ns,
          buffer.end_ns,
          contents,
          buffer.times};
}

LoggedCounts Trace::replay(profile::AccessSink &sink, ThreadOrder order) const {
  if (order == ThreadOrder::by_time)
    return replay_by_time(sink);
  StreamReplay replay(decoder_, sink);
  for (const TracedStream &stream : streams_)
    replay.stream(stream);
  for (const Buffer &buffer : buffers_) {
    const std::vector<std::byte> data = contents_of(buffer);
    replay.buffer(traced(buffer, data));
  }
  replay.end(end_ && !end_->was_killed());
  return replay.logged();
}

} // namespace trace
