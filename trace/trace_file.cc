// The file is mapped, and of buffers only their places are kept; replay() decompresses one at a
// time, so a trace may be larger than memory.
//
// What a record refers to stands before it; if it does not, the trace is damaged. A number of a
// stream means the last one so far that has it.

#include "trace/trace_file.h"

#include "base/fail.h"
#include "trace/stream_replay.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace trace {
namespace {

std::vector<std::string> strings_of(std::span<const std::byte> tail, const char *what) {
  std::vector<std::string> strings;
  for (base::ByteReader reader(tail, what); !reader.at_end();)
    strings.emplace_back(reader.zero_terminated());
  return strings;
}

} // namespace

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
  if (files_.empty() && !damage_.empty())
    base::fail(
        "{}: the file was cut off or damaged before anything that was traced; record it again",
        path);
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
                    static_cast<int>(from.wait_status), from.why == ASSAY_TRACE_STOPPED};
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
