// The accesses of a program while it runs: a TraceSink that hands them to an AccessSink, and stores nothing.
#pragma once

#include "trace/decode.h"
#include "trace/stream_replay.h"
#include "trace/trace_data.h"

#include <optional>
#include <vector>

namespace trace {

class LiveAccesses : public TraceSink {
public:
  // The sink must outlive it. It hears of each access, within a thread in order; the last ones come with end().
  explicit LiveAccesses(profile::AccessSink &sink) : replay_(decoder_, sink) {}

  void file(const TracedFile &file, const MovedModule &moved) override;
  void mapping(const TracedMapping &mapping) override { decoder_.add(mapping); }
  void stream(const TracedStream &stream) override { replay_.stream(stream); }
  void buffer(const TracedBuffer &buffer) override { replay_.buffer(buffer); }
  void end(const TraceEnd &end) override;

  // What a Trace of the same run would say.
  const std::vector<TracedFile> &files() const { return files_; }
  const std::vector<MovedFunction> &functions_of(size_t file) const { return functions_[file]; }
  const std::vector<profile::AccessSite> &sites() const { return decoder_.sites(); }
  const std::optional<TraceEnd> &end() const { return end_; }

private:
  GroupDecoder decoder_;
  StreamReplay replay_;
  std::vector<TracedFile> files_;
  std::vector<std::vector<MovedFunction>> functions_; // by place in files_
  std::optional<TraceEnd> end_;
};

} // namespace trace
