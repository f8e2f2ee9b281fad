// A recording that goes on for as long as one wants, in bounded memory: where there is little room
// left for code or for places, another one takes over, and what was measured is added up. So code
// that comes late is sampled like code that came first; after two minutes, half a minute later at most.
#pragma once

#include "profile/profile.h"
#include "values/recording.h"

#include <chrono>
#include <memory>
#include <set>

namespace values {

// Another recording with the same collector, which begins anew. What was measured must have been taken.
std::unique_ptr<Recording> renewed(std::unique_ptr<Recording> recording,
                                   const RecordingSettings &settings);

class RenewedRecording {
public:
  // Beyond so many places, those that came in fewest samples are left out of what is added up, as a loss.
  struct Limits {
    size_t lists, instructions;
  };
  static constexpr Limits kOfAll{40'000, 160'000}, kOfOne{100'000, 400'000};

  // `scope`: enum AssaySamplingScope. Where the collector cannot begin anew, it is one recording.
  RenewedRecording(std::unique_ptr<Collector> collector, const RecordingSettings &settings,
                   uint32_t scope);

  Collector &collector() { return recording_->collector(); }
  const Collector &collector() const { return recording_->collector(); }
  const CodeCache &code() const { return recording_->code(); }
  // As Recording::poll(). What is added up is a section of `process`.
  void poll(int milliseconds, const profile::Process &process);
  // No more samples are taken, and no recording takes over.
  void stop();
  // Of everything; the places are those of the recording that goes on.
  Recording::Progress progress() const;
  // Processes that samples came in.
  std::set<uint32_t> pids() const;
  // What was measured since the begin. Once: values go with it.
  profile::Profile profile(const profile::Process &process, uint64_t duration_us);

private:
  using Clock = std::chrono::steady_clock;
  bool is_full() const;
  bool may_renew() const;
  void renew(const profile::Process &process);

  RecordingSettings settings_;
  uint32_t scope_;
  Limits limits_;
  bool is_renewed_;
  std::unique_ptr<Recording> recording_;
  Recording::Progress before_; // of those that are over
  std::set<uint32_t> pids_before_;
  profile::Profile sum_; // the same
  Clock::time_point begin_ = Clock::now(), renewed_ = begin_;
};

} // namespace values
