// Parts of a run: what is recorded from some time or access on, up to another, or in windows that come again.
#pragma once

#include "trace/live_accesses.h"
#include "trace/trace_data.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace trace {

// A time, or a number of accesses that are traced.
struct TracePoint {
  uint64_t ns = 0, accesses = 0;
  // "2s" or "10M". Throws Failure for what is neither.
  static TracePoint parse(const std::string &text, const char *option);
};

struct TraceParts {
  std::vector<std::string> asked;       // options, as the user has written them
  std::optional<TracePoint> start;      // from the begin of the program
  std::optional<TracePoint> stop;       // from there on
  uint64_t window_ns = 0, every_ns = 0; // recorded are the first `window_ns` of every `every_ns`
  std::string start_mark,
      stop_mark; // of the program; recorded is from one to the other, again and again
  // How often the user has asked to begin or to end: recorded is from each odd one to the next.
  // Empty: that is not asked for.
  std::function<uint32_t()> switches;
  // "10ms/1s". Throws Failure for what is no such thing.
  void set_window(const std::string &text);
  bool has_marks() const { return !start_mark.empty() || !stop_mark.empty(); }
  bool is_all() const { return !start && !stop && !every_ns && !has_marks() && !switches; }
  // Throws Failure if they exclude each other.
  void check() const;
};

// Hands on what belongs to the parts, and says by its gate when threads are to log. Threads notice
// it with their next buffer, so a part may begin and end later by a buffer a thread.
class PartialSink : public TraceSink {
public:
  PartialSink(TraceSink &to, const TraceParts &parts);

  // RecordingSettings::gate
  uint32_t gate(uint64_t elapsed_ns);

  void file(const TracedFile &file, const MovedModule &moved) override;
  void mapping(const TracedMapping &mapping) override;
  void stream(const TracedStream &stream) override;
  void buffer(const TracedBuffer &buffer) override;
  void end(const TraceEnd &end) override { to_.end(end); }

  // Nothing was handed on: why, as a sentence.
  std::optional<std::string> why_nothing() const;

private:
  bool has_enough() const;
  struct Counter : profile::AccessSink {
    uint64_t all = 0;
    void accesses(const profile::AccessOrigin &, std::span<const profile::Access> batch) override {
      all += batch.size();
    }
  };
  TraceSink &to_;
  const TraceParts parts_;
  Counter counted_;
  LiveAccesses live_; // counts, where a point is a number of accesses
  const bool counts_;
  bool has_started_, has_stopped_ = false, is_open_ = true, has_any_ = false;
  uint64_t elapsed_ns_ = 0, started_ns_ = 0;
  uint64_t recorded_ = 0; // accesses of buffers that were handed on, where accesses are counted
  uint32_t gate_ = ASSAY_GATE_OPEN;
  std::set<uint32_t> dropped_; // streams that began before
};

} // namespace trace
