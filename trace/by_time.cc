// All threads in the order of time, as far as it is known. Of each buffer it is known when it was
// begun and when it was full, and, where several threads ran, about each millisecond how much of it
// had been logged (Recording). Between two such times a thread is taken to have logged evenly.
//
// The thread that is behind goes on until it has passed the next one by a microsecond: shorter
// turns would say more than is known, and cost more than the accesses themselves.

#include "trace/stream_replay.h"
#include "trace/trace_file.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>

namespace trace {
namespace {

constexpr uint64_t kTurnNs = 1000;

// A turn may end between the read and the write of one instruction. So a read that came last waits
// for its thread's next turn.
class WholeInstructions : public profile::AccessSink {
public:
  explicit WholeInstructions(profile::AccessSink &to) : to_(to) {}

  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override {
    give_waiting(origin);
    if (!batch.empty() && !batch.back().is_write) {
      waiting_.insert_or_assign(thread_of(origin), std::pair(origin, batch.back()));
      batch = batch.first(batch.size() - 1);
    }
    if (!batch.empty())
      to_.accesses(origin, batch);
  }
  void loop(const profile::AccessOrigin &origin, std::span<const profile::AccessRun> body,
            uint64_t times) override {
    give_waiting(origin);
    to_.loop(origin, body, times);
  }
  // Nothing more comes.
  void end() {
    while (!waiting_.empty())
      give_waiting(waiting_.begin()->second.first);
  }

private:
  using Thread = std::pair<uint32_t, uint32_t>;
  static Thread thread_of(const profile::AccessOrigin &origin) {
    return {origin.process, origin.thread};
  }
  void give_waiting(const profile::AccessOrigin &origin) {
    if (const auto waited = waiting_.extract(thread_of(origin)))
      to_.accesses(waited.mapped().first, std::span(&waited.mapped().second, 1));
  }

  profile::AccessSink &to_;
  std::map<Thread, std::pair<profile::AccessOrigin, profile::Access>> waiting_;
};

} // namespace

class Trace::ByTime {
public:
  ByTime(const Trace &trace, profile::AccessSink &sink)
      : trace_(trace), sink_(sink), replay_(trace.decoder_, sink_) {}

  LoggedCounts all() {
    std::unordered_map<uint32_t, uint32_t> parents; // of handlers' streams
    for (const TracedStream &stream : trace_.streams_) {
      replay_.stream(stream);
      if (stream.in_handler())
        parents.emplace(stream.number, stream.parent);
    }
    std::unordered_map<uint32_t, size_t> thread_of; // by number of the stream
    for (const Buffer &buffer : trace_.buffers_) {
      const uint32_t number = root_of(trace_.streams_[buffer.stream].number, parents);
      const auto [found, is_new] = thread_of.try_emplace(number, threads_.size());
      if (is_new)
        threads_.emplace_back();
      Thread &thread = threads_[found->second];
      thread.buffers.push_back(&buffer);
      thread.begin_ns = std::min(thread.begin_ns, buffer.begin_ns);
    }
    take_turns();
    replay_.end(trace_.end_ && !trace_.end_->was_killed());
    sink_.end();
    return replay_.logged();
  }

private:
  // The stream of the thread. Each that was passed on the way then leads there at once: handlers
  // that were left by jumps make long ways.
  static uint32_t root_of(uint32_t number, std::unordered_map<uint32_t, uint32_t> &parents) {
    std::vector<uint32_t> passed;
    // Streams are numbered as they begin, a handler's behind that which it interrupted.
    for (auto up = parents.find(number); up != parents.end() && up->second < number;
         up = parents.find(number)) {
      passed.push_back(number);
      number = up->second;
    }
    for (uint32_t each : passed)
      parents[each] = number;
    return number;
  }
  // What is left of a thread.
  struct Thread {
    std::vector<const Buffer *>
        buffers; // its own, and before each those of handlers that interrupted it there
    uint64_t begin_ns = UINT64_MAX;
    size_t next = 0;
    const Buffer *buffer = nullptr; // its own that is being decoded
    std::vector<std::byte> data;
    uint64_t at = 0; // bytes of it
    std::vector<LoggedBy> times;

    // When it logged what comes behind so many bytes of the buffer, and how much it had logged by then.
    uint64_t ns_at(uint64_t bytes) const {
      const auto to = std::upper_bound(times.begin() + 1, times.end() - 1, bytes,
                                       [](uint64_t a, const LoggedBy &b) { return a < b.bytes; });
      return between(bytes, (to - 1)->bytes, to->bytes, (to - 1)->ns, to->ns);
    }
    uint64_t bytes_by(uint64_t ns) const {
      const auto to = std::lower_bound(times.begin() + 1, times.end() - 1, ns,
                                       [](const LoggedBy &a, uint64_t b) { return a.ns < b; });
      return between(ns, (to - 1)->ns, to->ns, (to - 1)->bytes, to->bytes);
    }
    static uint64_t between(uint64_t x, uint64_t x0, uint64_t x1, uint64_t y0, uint64_t y1) {
      if (x <= x0 || x1 <= x0)
        return x <= x0 ? y0 : y1;
      const double part = std::min(1., double(x - x0) / double(x1 - x0));
      return y0 + static_cast<uint64_t>(part * double(y1 - y0));
    }
  };

  // False: there are no more.
  bool begin_buffer(Thread &thread) {
    while (thread.next < thread.buffers.size()) {
      const Buffer &buffer = *thread.buffers[thread.next++];
      std::vector<std::byte> data = trace_.contents_of(buffer);
      if (trace_.streams_[buffer.stream].in_handler()) {
        replay_.buffer(trace_.traced(buffer, data));
        continue;
      }
      if (data.empty())
        continue;
      thread.buffer = &buffer;
      thread.data = std::move(data);
      thread.at = 0;
      thread.times = {{0, buffer.begin_ns}};
      for (const LoggedBy &time : buffer.times)
        if (time.ns >= thread.times.back().ns && time.bytes >= thread.times.back().bytes &&
            time.bytes <= thread.data.size())
          thread.times.push_back(time);
      thread.times.push_back({thread.data.size(), std::max(buffer.end_ns, thread.times.back().ns)});
      return true;
    }
    return false;
  }

  void take_turns() {
    using Turn = std::pair<uint64_t, size_t>; // when, whose
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    for (size_t t = 0; t < threads_.size(); t++)
      turns.emplace(threads_[t].begin_ns, t);
    while (!turns.empty()) {
      const size_t t = turns.top().second;
      Thread &thread = threads_[t];
      turns.pop();
      if (!thread.buffer && !begin_buffer(thread))
        continue;
      uint64_t to = thread.data.size();
      if (!turns.empty())
        to = std::clamp(thread.bytes_by(turns.top().first + kTurnNs), thread.at + 1, to);
      thread.at = replay_.part(trace_.traced(*thread.buffer, thread.data), thread.at, to);
      if (thread.at < thread.data.size() || begin_buffer(thread))
        turns.emplace(thread.ns_at(thread.at), t);
      else
        thread = {};
    }
  }

  const Trace &trace_;
  WholeInstructions sink_;
  StreamReplay replay_;
  std::vector<Thread> threads_;
};

LoggedCounts Trace::replay_by_time(profile::AccessSink &sink) const {
  return ByTime(*this, sink).all();
}

} // namespace trace
