// Lets accesses be decoded and analysed at the same time.
#pragma once

#include "base/ordered_work.h"
#include "base/spares.h"
#include "profile/access_stream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace trace {

// Hands accesses on to a sink in another thread, in their order. That sink may be used again behind finish().
class SinkThread : public profile::AccessSink {
public:
  explicit SinkThread(profile::AccessSink &sink);
  ~SinkThread() override;
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override;
  void loop(const profile::AccessOrigin &origin, std::span<const profile::AccessRun> body,
            uint64_t times) override;
  // Throws what the sink threw; so may the others.
  void finish();

private:
  struct Chunk;
  Chunk &chunk_for(size_t more);
  void hand_over();

  profile::AccessSink &sink_;
  std::shared_ptr<Chunk> chunk_; // that is being filled; null: none
  base::Spares<Chunk> chunks_;
  base::OrderedWork work_{1, 16};
};

} // namespace trace
