// analysis_speed DIR [MILLIONS]: how many accesses a second each analysis of `assay trace` takes,
// of the first ones of a real trace that lie in memory.
//
// The time to regenerate them from the trace is not in it, which `replay` shows. Best of three.

#include "analyze/access_counts.h"
#include "analyze/cache_simulation.h"
#include "analyze/miss_ratio_curve.h"
#include "analyze/reuse_distances.h"
#include "base/fail.h"
#include "trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Batch {
  profile::AccessOrigin origin;
  size_t begin, end;
};

class Kept : public profile::AccessSink {
public:
  explicit Kept(size_t most) : most_(most) {}
  std::vector<profile::Access> all;
  std::vector<Batch> batches;
  uint64_t count = 0;
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override {
    count += batch.size();
    if (all.size() >= most_)
      return;
    batches.push_back({origin, all.size(), all.size() + batch.size()});
    all.insert(all.end(), batch.begin(), batch.end());
  }

private:
  size_t most_;
};

class Nothing : public profile::AccessSink {
public:
  void accesses(const profile::AccessOrigin &, std::span<const profile::Access>) override {}
};

// Accesses come out of a cache, as from the one who regenerates them.
template <class Make> void measure(const char *name, const Kept &kept, Make make) {
  double best = 1e9;
  std::vector<profile::Access> now;
  for (int round = 0; round < 3; round++) {
    auto sink = make();
    double seconds = 0;
    for (const Batch &batch : kept.batches) {
      now.assign(kept.all.begin() + static_cast<std::ptrdiff_t>(batch.begin),
                 kept.all.begin() + static_cast<std::ptrdiff_t>(batch.end));
      const auto begin = Clock::now();
      sink->accesses(batch.origin, now);
      seconds += seconds_since(begin);
    }
    best = std::min(best, seconds);
  }
  fmt::print("  {:<14} {:>7.0f} M accesses/s\n", name, double(kept.all.size()) / best / 1e6);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  try {
    const trace::Trace trace(std::string(argv[1]) + "/trace.assay");
    Nothing nothing;
    const auto begin = Clock::now();
    trace.replay(nothing);
    const double replay = seconds_since(begin);
    Kept kept(size_t{1'000'000} * (argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 50));
    trace.replay(kept);
    fmt::print("{}: {} accesses, {} in memory\n", argv[1], kept.count, kept.all.size());
    fmt::print("  {:<14} {:>7.0f} M accesses/s\n", "replay", double(kept.count) / replay / 1e6);
    measure("counts", kept, [] { return std::make_unique<analyze::AccessCounts>(); });
    measure("cache", kept,
            [] { return std::make_unique<analyze::CacheSimulation>(analyze::CacheSettings{}); });
    measure("reuse", kept, [] { return std::make_unique<analyze::ReuseDistances>(); });
    measure("mrc", kept, [] { return std::make_unique<analyze::SampledCurve>(1 << 15); });
  } catch (const base::Failure &failure) {
    fmt::print(stderr, "analysis_speed: {}\n", failure.what());
    return 1;
  }
}
