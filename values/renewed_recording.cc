// Published code cannot be taken back page by page, because a sample may be at it. So all of it
// goes, while no samples are taken: some hundredths of a second. Another collector was refused: the
// kernel takes half a second to check the program again, and there would be memory for both.

#include "values/renewed_recording.h"

#include "abi/records.h"
#include "values/profile_parts.h"

#include <malloc.h>

namespace values {
namespace {
constexpr std::chrono::seconds kWithoutWaits{120}, kInterval{30};
} // namespace

std::unique_ptr<Recording> renewed(std::unique_ptr<Recording> recording,
                                   const RecordingSettings &settings) {
  std::unique_ptr<Collector> collector = recording->take_collector();
  KeptCode kept = recording->take_code();
  recording.reset();
  collector->begin_anew();
  return std::make_unique<Recording>(std::move(collector), settings, std::move(kept));
}

RenewedRecording::RenewedRecording(std::unique_ptr<Collector> collector,
                                   const RecordingSettings &settings, uint32_t scope)
    : settings_(settings), scope_(scope), limits_(scope == ASSAY_SAMPLING_SYSTEM ? kOfAll : kOfOne),
      is_renewed_(collector->can_begin_anew()),
      recording_(std::make_unique<Recording>(std::move(collector), settings)) {}

void RenewedRecording::poll(int milliseconds, const profile::Process &process) {
  recording_->poll(milliseconds);
  if (is_renewed_ && is_full() && may_renew())
    renew(process);
}

bool RenewedRecording::is_full() const {
  return recording_->is_nearly_full() || recording_->has_many_places();
}

// Beside a compiler it is full every ten seconds. A recording of a minute or two should miss
// nothing; in one of hours, code that stays hot has its samples, and is not decoded again and again.
bool RenewedRecording::may_renew() const {
  const auto now = Clock::now();
  return now - begin_ < kWithoutWaits || now - renewed_ >= kInterval;
}

// Samples that come while the profiles are added wait in the collector's buffer.
void RenewedRecording::renew(const profile::Process &process) {
  recording_->collector().stop();
  recording_->poll(0);
  before_ = progress();
  pids_before_ = pids();
  profile::Profile part =
      recording_->take(process, scope_, 0).profile; // the whole time is told at the end
  recording_ = renewed(std::move(recording_), settings_);
  add_up(sum_, std::move(part), limits_.lists, limits_.instructions);
  malloc_trim(0);
  renewed_ = Clock::now();
}

void RenewedRecording::stop() {
  is_renewed_ = false;
  recording_->collector().stop();
}

Recording::Progress RenewedRecording::progress() const {
  Recording::Progress sum = before_;
  const Recording::Progress now = recording_->progress();
  sum.samples += now.samples;
  sum.values += now.values;
  sum.places = now.places;
  sum.interrupts = now.interrupts; // the collector's, which has counted all of them
  sum.lost = now.lost;
  sum.programs = now.programs;
  return sum;
}

std::set<uint32_t> RenewedRecording::pids() const {
  std::set<uint32_t> all = pids_before_;
  all.insert(recording_->pids().begin(), recording_->pids().end());
  return all;
}

// Of the process, what is known by now is more than the parts have.
profile::Profile RenewedRecording::profile(const profile::Process &process, uint64_t duration_us) {
  profile::Profile last = recording_->profile(process, scope_, duration_us);
  if (sum_.processes.empty())
    return last;
  add_up(sum_, std::move(last), limits_.lists, limits_.instructions);
  profile::Process &joined = sum_.processes.front();
  profile::Process whole = process;
  whole.sampling = joined.sampling;
  whole.mappings = std::move(joined.mappings);
  joined = std::move(whole);
  return std::move(sum_);
}

} // namespace values
