// Compares two logs of the same run: the accesses that follow from groups, with each access logged by itself.
#pragma once

#include "trace/decode.h"
#include "trace/interruptions.h"
#include "trace/trace_data.h"

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace trace {

class Comparison : public TraceSink {
public:
  void file(const TracedFile &file, const MovedModule &moved) override;
  void mapping(const TracedMapping &mapping) override;
  void stream(const TracedStream &stream) override;
  void buffer(const TracedBuffer &buffer) override;
  void end(const TraceEnd &end) override;

  uint64_t compared() const { return compared_; }
  // Accesses at the end of a stream that one log has and the other lacks.
  uint64_t unpaired() const { return unpaired_; }
  // Threads, and signal handlers, of which nothing was logged because too many ran at once.
  uint64_t untraced_threads() const { return untraced_threads_; }
  // The first that differs, in one sentence.
  const std::optional<std::string> &difference() const { return difference_; }

private:
  struct Pair {
    std::deque<profile::Access> sides[2]; // what was not compared yet: of groups, of accesses
  };
  bool is_same(const profile::Access &a, const profile::Access &b) const;
  std::string describe(const profile::Access &access) const;

  GroupDecoder decoder_;
  std::vector<TracedFile> files_;
  struct Stream {
    TracedStream of;
    StreamPosition position;
    uint64_t bytes = 0;
  };
  void take(std::span<const profile::Access> accesses);
  std::unordered_map<uint32_t, Stream> streams_;         // by number
  std::unordered_map<uint32_t, Interruptions> handlers_; // by number of the interrupted stream
  std::unordered_map<uint32_t, Pair> pairs_;             // by number of the groups' stream
  const TracedStream *decoded_ = nullptr;                // the stream that is being decoded
  AccessOutput output_{[this](auto batch) { take(batch); }};
  uint64_t compared_ = 0, unpaired_ = 0, untraced_threads_ = 0;
  std::optional<std::string> difference_;
};

} // namespace trace
