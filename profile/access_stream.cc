#include "profile/access_stream.h"

namespace profile {

void AccessSink::loop(const AccessOrigin &origin, std::span<const AccessRun> body, uint64_t times) {
  constexpr size_t kBatch = 1 << 14;
  std::vector<Access> batch;
  for (uint64_t i = 0; i < times; i++) {
    for (const AccessRun &run : body) {
      batch.push_back(run.first);
      batch.back().address += i * run.step;
    }
    if (batch.size() >= kBatch) {
      accesses(origin, batch);
      batch.clear();
    }
  }
  if (!batch.empty())
    accesses(origin, batch);
}

} // namespace profile
