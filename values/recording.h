// A recording: a collector's messages become a profile, or, of one that goes on, a profile now and then.
#pragma once

#include "profile/profile.h"
#include "values/code_cache.h"
#include "values/collector.h"
#include "values/value_sums.h"

#include <deque>
#include <memory>
#include <set>

namespace values {

struct RecordingSettings {
  SamplingSettings sampling;
  ValueSums::Settings sums;
  Kinds kinds = kAllKinds;
  std::vector<std::string> callers_in; // CodeCache::record_callers_in()
};

class Recording : private MessageTaker {
public:
  // `kept`: of a recording with the same settings (take_code()).
  Recording(std::unique_ptr<Collector> collector, const RecordingSettings &settings,
            KeptCode kept = {});

  Collector &collector() { return *collector_; }
  const Collector &collector() const { return *collector_; }
  // For another recording: this one is over.
  std::unique_ptr<Collector> take_collector() { return std::move(collector_); }
  KeptCode take_code() { return code_.take_kept(); }
  const CodeCache &code() const { return code_; }

  // Takes what has come, and decodes what was missed; waits for at most so long if nothing has come.
  void poll(int milliseconds);

  struct Progress {
    uint64_t interrupts = 0, samples = 0, values = 0, places = 0, lost = 0,
             programs = 0; // programs that sample themselves
  };
  Progress progress() const;

  // Processes that samples came in: the first 65,536 of them.
  const std::set<uint32_t> &pids() const { return pids_; }

  // What was measured, as a section of `process`, of which everything but the sampling and the
  // mappings is set. Once: values go with it.
  profile::Profile profile(profile::Process process, uint32_t scope, uint64_t duration_us);

  // What was measured since the last time, and begins anew.
  struct Taken {
    profile::Profile profile;
    std::vector<ValueSums::Ends>
        ends; // of samples in each module, by its number; not canonical yet
  };
  Taken take(const profile::Process &process, uint32_t scope, uint64_t duration_us);
  // Whether there is little room left for code and what is known of files: then another recording must go on.
  bool is_nearly_full() const;
  // Whether so many files are open that memory is to be given back.
  bool has_many_files() const;
  // Of places at which values are kept, whether there is little room.
  bool has_many_places() const;

private:
  void sample(const assay_sample &sample, std::span<const assay_sampled_value> values) override;
  void miss(const assay_miss &miss) override { misses_.push_back(miss); }
  void fill(const assay_miss &miss);
  struct Ahead {
    assay_miss miss;
    uint64_t from; // the address that a sample missed
  };
  void fill_ahead();
  void follow(const assay_miss &miss, const CodeCache::Answer &answer, uint64_t from);
  void place_samples();
  profile::Profile profile_since_taken(profile::Process process, uint32_t scope,
                                       uint64_t duration_us, const CollectorCounts &counts);

  std::unique_ptr<Collector> collector_;
  RecordingSettings settings_;
  CodeCache code_;
  ValueSums sums_;
  std::deque<assay_miss> misses_;
  std::deque<Ahead> ahead_;            // filled where nothing else is to be done
  std::vector<assay_sample> unplaced_; // that came to code which was not there yet
  CollectorCounts taken_; // what take(), and recordings with this collector before, have given
  std::set<uint32_t> pids_;
  uint64_t full_ = 0, unreadable_ = 0;
};

} // namespace values
