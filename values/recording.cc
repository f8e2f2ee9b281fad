// Samples wait in a buffer of limited size, and to decode a large file for the first time may take
// a second. So misses are put into a queue, and some are decoded between two polls of the buffer.
//
// Of a recording that goes on, a profile is what came since the one before: sums begin anew, and of
// the collector's counts, which only grow, the difference is taken. Published code stays, because
// an interpreter may be at it; where it has taken most of its room, another recording must take
// over.

#include "values/recording.h"

#include "abi/records.h"
#include "values/cpu_time.h"

#include <chrono>

namespace values {

namespace {
using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLast{2};
constexpr double kNearlyFull = .75;
constexpr size_t kManyFiles = 300; // symbols of each are kept
constexpr size_t kMaxUnplaced = 65536, kMaxPids = 65536;
constexpr uint64_t kAheadBytes = 4096; // of a function, around what was missed
} // namespace

Recording::Recording(std::unique_ptr<Collector> collector, const RecordingSettings &settings,
                     KeptCode kept)
    : collector_(std::move(collector)), settings_(settings),
      code_(collector_->pages(), collector_->entries(), settings.kinds),
      sums_(code_, settings.sums), taken_(collector_->counts()) {
  code_.publish_again(std::move(kept), [this](const assay_code_key &key, uint32_t page) {
    collector_->announce(key, page);
  });
  code_.record_callers_in(settings.callers_in);
  if (const KernelCode *kernel = collector_->kernel_code())
    code_.decode_kernel(*kernel, [this](uint64_t address, size_t size) {
      return collector_->kernel_bytes(address, size);
    });
}

void Recording::sample(const assay_sample &sample, std::span<const assay_sampled_value> values) {
  code_.count_sample(sample.start);
  if (pids_.size() < kMaxPids)
    pids_.insert(sample.pid);
  if (sample.start == 0 && values.empty())
    unplaced_.push_back(sample);
  else
    sums_.add(sample, values);
}

// It came to code that was not there yet; by now it may be.
void Recording::place_samples() {
  for (assay_sample &sample : unplaced_) {
    sample.start = code_.where_at(sample.pid, sample.pc);
    sums_.add(sample, {});
  }
  unplaced_.clear();
}

// Decoding a large file for the first time may take a second, in which samples go on to come: so it is done in between.
void Recording::poll(int milliseconds) {
  collector_->poll(misses_.empty() && ahead_.empty() ? milliseconds : 0, *this);
  const auto begin = thread_cpu_time();
  auto has_time = [&] { return thread_cpu_time() - begin < std::chrono::milliseconds(20); };
  while (!misses_.empty() && has_time()) {
    const assay_miss miss = misses_.front();
    misses_.pop_front();
    fill(miss);
  }
  while (!ahead_.empty() && has_time())
    fill_ahead();
  if (misses_.empty() || unplaced_.size() >= kMaxUnplaced)
    place_samples();
}

void Recording::fill(const assay_miss &miss) {
  const CodeCache::Answer answer = code_.fill(miss);
  if (answer.filled == CodeCache::Filled::no_room)
    full_++;
  else if (answer.filled == CodeCache::Filled::unreadable)
    unreadable_++;
  follow(miss, answer, miss.address);
}

// Samples will come to the rest of the function soon, and each that misses ends there.
void Recording::follow(const assay_miss &miss, const CodeCache::Answer &answer, uint64_t from) {
  if (answer.is_new_page)
    collector_->announce({miss.page, miss.file, miss.device, miss.version}, answer.page);
  for (const assay_miss &next : answer.ahead)
    if (next.address - from + kAheadBytes < 2 * kAheadBytes)
      ahead_.push_back({next, from});
}

void Recording::fill_ahead() {
  const Ahead next = ahead_.front();
  ahead_.pop_front();
  if (code_.fullness() <= kNearlyFull)
    follow(next.miss, code_.fill_ahead(next.miss), next.from);
}

Recording::Progress Recording::progress() const {
  const CollectorCounts counts = collector_->counts();
  return {counts.interrupts, sums_.samples(), sums_.values(),
          sums_.places(),    counts.lost,     counts.programs};
}

profile::Profile Recording::profile(profile::Process process, uint32_t scope,
                                    uint64_t duration_us) {
  for (const auto begin = Clock::now(); !misses_.empty() && Clock::now() - begin < kLast;)
    poll(0); // so that all samples have their places
  place_samples();
  return profile_since_taken(std::move(process), scope, duration_us, collector_->counts());
}

profile::Profile Recording::profile_since_taken(profile::Process process, uint32_t scope,
                                                uint64_t duration_us,
                                                const CollectorCounts &counts) {
  profile::Profile profile;
  process.sampling = profile::Sampling{collector_->kind(),
                                       scope,
                                       settings_.sampling.hertz,
                                       settings_.sampling.instructions,
                                       settings_.sampling.most_skipped,
                                       settings_.kinds,
                                       duration_us};
  // First: a place in the kernel is in a file that it may be the first one in.
  sums_.move_to(profile);
  for (const CodeFile &file : code_.files()) {
    const profile::ModuleId module{static_cast<uint32_t>(profile.modules.size())};
    profile::Module &to = profile.modules.emplace_back();
    to.path = code_.path_of_build(file);
    to.build_id = file.build_id;
    process.mappings.push_back({module, 0, 0, 0, 0, {}});
  }
  profile.processes.push_back(std::move(process));
  const uint64_t in_kernel = counts.in_kernel - taken_.in_kernel;
  profile.values.samples += in_kernel;
  profile.values.ends[ASSAY_ENDED_kernel] += in_kernel;
  auto lose = [&](uint32_t kind, uint64_t count) {
    if (count)
      profile.losses[kind] += count;
  };
  lose(ASSAY_LOSS_lost_samples, counts.lost - taken_.lost);
  lose(ASSAY_LOSS_code_cache_full, full_ + counts.no_place - taken_.no_place);
  lose(ASSAY_LOSS_unsampled_threads, counts.unsampled_threads - taken_.unsampled_threads);
  lose(ASSAY_LOSS_blocked_samples, counts.blocked - taken_.blocked);
  lose(ASSAY_LOSS_unreadable_code, unreadable_ + counts.hidden_programs - taken_.hidden_programs);
  lose(ASSAY_LOSS_many_places, sums_.lost_values());
  return profile;
}

Recording::Taken Recording::take(const profile::Process &process, uint32_t scope,
                                 uint64_t duration_us) {
  place_samples();
  const CollectorCounts counts = collector_->counts();
  Taken taken{profile_since_taken(process, scope, duration_us, counts), sums_.ends_of_files()};
  taken_ = counts;
  full_ = unreadable_ = 0;
  pids_.clear();
  sums_.clear();
  return taken;
}

bool Recording::is_nearly_full() const {
  return code_.fullness() > kNearlyFull || has_many_files();
}

bool Recording::has_many_files() const {
  return code_.open_files() > kManyFiles;
}

bool Recording::has_many_places() const {
  return double(sums_.places()) > kNearlyFull * double(settings_.sums.most_places);
}

} // namespace values
