// What comes is gathered in chunks: a loop of two accesses is not worth waking a thread.

#include "trace/sink_thread.h"

namespace trace {

struct SinkThread::Chunk {
  struct Part {
    profile::AccessOrigin origin;
    size_t count = 0;   // of `accesses`; of a loop, of `body`
    uint64_t times = 0; // of a loop
  };
  std::vector<Part> parts;
  std::vector<profile::Access> accesses;
  std::vector<profile::AccessRun> body;

  void clear() {
    parts.clear();
    accesses.clear();
    body.clear();
  }
  void hand_to(profile::AccessSink &sink) const {
    std::span<const profile::Access> all(accesses);
    std::span<const profile::AccessRun> bodies(body);
    for (const Part &part : parts)
      if (part.times) {
        sink.loop(part.origin, bodies.first(part.count), part.times);
        bodies = bodies.subspan(part.count);
      } else {
        sink.accesses(part.origin, all.first(part.count));
        all = all.subspan(part.count);
      }
  }
};

SinkThread::SinkThread(profile::AccessSink &sink) : sink_(sink) {}
SinkThread::~SinkThread() = default;

SinkThread::Chunk &SinkThread::chunk_for(size_t more) {
  constexpr size_t kMax = 8192; // accesses, and accesses of bodies
  if (chunk_ && chunk_->accesses.size() + chunk_->body.size() + more > kMax)
    hand_over();
  if (!chunk_)
    chunk_ = chunks_.take();
  return *chunk_;
}

void SinkThread::accesses(const profile::AccessOrigin &origin,
                          std::span<const profile::Access> batch) {
  Chunk &to = chunk_for(batch.size());
  to.parts.push_back({origin, batch.size(), 0});
  to.accesses.insert(to.accesses.end(), batch.begin(), batch.end());
}

void SinkThread::loop(const profile::AccessOrigin &origin, std::span<const profile::AccessRun> body,
                      uint64_t times) {
  if (times == 0)
    return;
  Chunk &to = chunk_for(body.size());
  to.parts.push_back({origin, body.size(), times});
  to.body.insert(to.body.end(), body.begin(), body.end());
}

void SinkThread::hand_over() {
  work_.add([] {},
            [this, chunk = std::move(chunk_)] {
              chunk->hand_to(sink_);
              chunk->clear();
              chunks_.give_back(chunk);
            });
}

void SinkThread::finish() {
  if (chunk_)
    hand_over();
  work_.finish();
}

} // namespace trace
