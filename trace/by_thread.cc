// A trace, one thread after the other: what a skeleton in C takes, which runs from one end of a
// stream to the other. Handlers are nested where they interrupted; what one leaves by a jump, or
// may have left, ends before it.

#include "trace/interruptions.h"
#include "trace/trace_file.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

namespace trace {

class Trace::ByThread {
public:
  ByThread(const Trace &trace, LoggedSink &sink)
      : trace_(trace), sink_(sink), buffers_(trace.streams_.size()) {
    for (const Buffer &buffer : trace.buffers_)
      buffers_[buffer.stream].push_back(&buffer);
    for (uint32_t s = 0; s < trace.streams_.size(); s++)
      index_of_[trace.streams_[s].number] = s;
    for (uint32_t s = 0; s < trace.streams_.size(); s++) {
      const TracedStream &stream = trace.streams_[s];
      if (!stream.in_handler())
        threads_.push_back(s);
      else if (index_of_.contains(stream.parent))
        handlers_[stream.parent].add(stream);
      else
        orphans_.push_back(s); // they interrupted a thread that had logged nothing
    }
  }

  void all() {
    for (uint32_t s : orphans_)
      with_rest(s, ends_well_);
    for (uint32_t s : threads_)
      with_rest(s, ends_well_);
  }

private:
  // With the handlers that interrupted it at its end, theirs, and so on: there may be many, so they
  // are no calls within calls.
  void with_rest(uint32_t first, bool went_on) {
    std::vector<uint32_t> rest = {first};
    while (!rest.empty()) {
      const uint32_t index = rest.back();
      rest.pop_back();
      const auto behind = stream(index, went_on);
      rest.insert(rest.end(), behind.rbegin(), behind.rend());
    }
  }

  // Returns the handlers that interrupted it at its end. `went_on`: if none of them left it by a jump.
  std::vector<uint32_t> stream(uint32_t index, bool went_on) {
    const TracedStream &stream = trace_.streams_[index];
    Interruptions none;
    const auto found = handlers_.find(stream.number);
    Interruptions &handlers = found == handlers_.end() ? none : found->second;
    sink_.begin(stream);
    for (const Buffer *buffer : buffers_[index]) {
      const std::vector<std::byte> data = trace_.contents_of(*buffer);
      for (uint64_t at = 0; at < data.size();) {
        const uint64_t to = handlers.end_of_run(buffer->offset, at, data.size());
        if (to > at)
          sink_.logged(stream, std::span(data).subspan(at, to - at));
        at = to;
        while (at < data.size() && handlers.is_due(buffer->offset + at))
          with_rest(take(handlers), true); // its thread logs on
      }
    }
    while (!handlers.empty() && handlers.next().has_returned)
      with_rest(take(handlers), true);
    const bool jumped_out = !handlers.empty(); // perhaps, of a handler, to elsewhere
    sink_.end(stream, went_on && !jumped_out);
    std::vector<uint32_t> rest;
    while (!handlers.empty())
      rest.push_back(take(handlers));
    return rest;
  }

  // The next handler's index.
  uint32_t take(Interruptions &handlers) const { return index_of_.at(handlers.take().number); }

  const Trace &trace_;
  LoggedSink &sink_;
  const bool ends_well_ = trace_.end_ && !trace_.end_->was_killed();
  std::vector<std::vector<const Buffer *>> buffers_;     // by index of the stream
  std::unordered_map<uint32_t, uint32_t> index_of_;      // by number of the stream
  std::unordered_map<uint32_t, Interruptions> handlers_; // by number of the interrupted stream
  std::vector<uint32_t> threads_, orphans_;
};

// From what was logged to accesses.
class Trace::Decoded : public LoggedSink {
public:
  Decoded(const GroupDecoder &decoder, profile::AccessSink *sink, std::vector<bool> *executed)
      : decoder_(decoder), sink_(sink), executed_(executed) {}

  void begin(const TracedStream &) override { positions_.emplace_back().executed = executed_; }
  void logged(const TracedStream &stream, std::span<const std::byte> bytes) override {
    origin_ = stream.origin();
    decoder_.decode(stream, positions_.back(), bytes, 0, bytes.size(), output_);
  }
  void end(const TracedStream &stream, bool went_on) override {
    origin_ = stream.origin();
    if (went_on)
      decoder_.finish(positions_.back(), output_);
    positions_.pop_back();
  }

private:
  void give(std::span<const profile::Access> accesses) {
    if (sink_)
      sink_->accesses(origin_, accesses);
  }

  const GroupDecoder &decoder_;
  profile::AccessSink *sink_;
  std::vector<bool> *executed_;
  profile::AccessOrigin origin_; // of what is being decoded
  AccessOutput output_{[this](auto batch) { give(batch); }};
  std::vector<StreamPosition>
      positions_; // of the streams that were interrupted, and of the one that runs
};

void Trace::logged_by_thread(LoggedSink &sink) const {
  ByThread(*this, sink).all();
}

void Trace::replay_by_thread(profile::AccessSink &sink) const {
  Decoded decoded(decoder_, &sink, nullptr);
  logged_by_thread(decoded);
}

std::vector<bool> Trace::executed_groups() const {
  uint64_t count = 0;
  for (const TracedFile &file : files_)
    count = std::max<uint64_t>(count, uint64_t{file.first_group} + file.groups);
  std::vector<bool> executed(count, false);
  Decoded decoded(decoder_, nullptr, &executed);
  logged_by_thread(decoded);
  return executed;
}

uint64_t Trace::bias_of(uint32_t program, uint32_t file) const {
  return decoder_.bias_of(program, file);
}

FileDefinitions Trace::definitions_of(size_t file) const {
  FileDefinitions definitions;
  profile::ContainerReader reader(mapped_.bytes(), "the trace", ASSAY_FILE_TRACE);
  profile::RecordView record;
  size_t at = 0; // one more than the place of the file whose records follow
  while (reader.next(record)) {
    at += record.kind == ASSAY_RECORD_TraceFile;
    if (at != file + 1)
      continue;
    if (record.kind == ASSAY_RECORD_TraceSkeletons) {
      auto more =
          decode_skeletons(record.tail, profile::fixed_part<AssayTraceSkeletons>(record).skeletons);
      definitions.skeletons.insert(definitions.skeletons.end(),
                                   std::make_move_iterator(more.begin()),
                                   std::make_move_iterator(more.end()));
    } else if (record.kind == ASSAY_RECORD_TraceGroups) {
      auto more = decode_groups(record.tail, profile::fixed_part<AssayTraceGroups>(record).groups);
      definitions.groups.insert(definitions.groups.end(), std::make_move_iterator(more.begin()),
                                std::make_move_iterator(more.end()));
    }
  }
  return definitions;
}

} // namespace trace
