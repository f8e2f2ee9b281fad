// `assay values record -a --daemon`: samples all processes for days.
//
// Every minute what was measured goes to the files of its executables (values/profile_folder.h),
// one file a turn, so that samples are read in between. Where the memory
// for published code or the number of open files is nearly used up, another recording takes over
// (values/renewed_recording.h).

#include "abi/records.h"
#include "base/fail.h"
#include "base/shell_words.h"
#include "base/units.h"
#include "cli/program_command.h"
#include "cli/values_record.h"
#include "values/choose_collector.h"
#include "values/profile_folder.h"
#include "values/renewed_recording.h"

#include <chrono>
#include <cstdio>
#include <deque>
#include <malloc.h>
#include <memory>
#include <unistd.h>

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::microseconds rotation_of(const RecordArguments &arguments) {
  const std::chrono::microseconds rotation(base::parse_duration_us(arguments.rotate, "--rotate"));
  if (rotation < std::chrono::seconds(1))
    base::fail("--rotate {}: choose a second at least", arguments.rotate);
  return rotation;
}

uint64_t disk_of(const RecordArguments &arguments) {
  const uint64_t bytes = base::parse_bytes(arguments.disk, "--disk");
  if (bytes < 1 << 20)
    base::fail("--disk {}: choose 1MiB at least", arguments.disk);
  return bytes;
}

class Daemon {
public:
  explicit Daemon(const RecordArguments &arguments)
      : arguments_(arguments), settings_(settings_of(arguments)), rotation_(rotation_of(arguments)),
        folder_(arguments.output.empty() ? new_folder("system", getpid()) : arguments.output,
                disk_of(arguments)) {
    if (!arguments.duration.empty())
      duration_ = duration_of(arguments);
  }

  int run() {
    start();
    const auto begin = Clock::now();
    std::fprintf(
        stderr, "assay: sampling all processes into %s, every %s; SIGTERM or Ctrl-C ends it\n",
        folder_.path().c_str(), base::format_duration_us(double(rotation_.count())).c_str());
    while (!asked_to_stop && !(duration_.count() && Clock::now() - begin >= duration_)) {
      recording_->poll(10);
      if (!parts_.empty())
        write_one();
      else if (Clock::now() - taken_ >= rotation_)
        rotate();
    }
    recording_->collector().stop();
    for (int i = 0; i < 3; i++)
      recording_->poll(0);
    take();
    while (!parts_.empty())
      write_one();
    std::fprintf(
        stderr, "assay: %s in %s; profiles in %s\n",
        base::format_counted(double(samples_), "sample").c_str(),
        base::format_duration_us(
            double(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin)
                       .count()))
            .c_str(),
        folder_.path().c_str());
    std::fprintf(stderr, "assay: next: assay values report %s\n",
                 base::shell_word(folder_.path()).c_str());
    return has_failed_ ? 1 : 0;
  }

private:
  void start() {
    auto chosen = values::choose_collector(arguments_.collector, settings_.sampling, false);
    recording_ = std::make_unique<values::Recording>(std::move(chosen.collector), settings_);
    if (const std::string why = recording_->collector().why_no_kernel_code(); !why.empty())
      std::fprintf(stderr, "assay: the kernel's own code is not interpreted: %s\n", why.c_str());
    recording_->collector().watch_all();
    taken_ = Clock::now();
  }

  void take() {
    const auto now = Clock::now();
    const auto duration = std::chrono::duration_cast<std::chrono::microseconds>(now - taken_);
    profile::Process process = process_of(arguments_, 0);
    process.ends = {{ASSAY_END_EXIT, 0, 0}};
    values::Recording::Taken taken =
        recording_->take(process, ASSAY_SAMPLING_SYSTEM, static_cast<uint64_t>(duration.count()));
    taken_ = now;
    samples_ += taken.profile.values.samples;
    for (values::ProfilePart &part :
         values::split_by_executable(std::move(taken.profile), taken.ends))
      parts_.push_back(std::move(part));
  }

  void rotate() {
    const bool is_full = recording_->is_nearly_full();
    if (is_full) {
      recording_->collector().stop();
      recording_->poll(0); // samples name pages of this recording
    }
    take();
    if (is_full)
      recording_ = values::renewed(std::move(recording_), settings_);
  }

  void write_one() {
    values::ProfilePart part = std::move(parts_.front());
    const auto samples = double(part.profile.values.samples);
    parts_.pop_front();
    if (parts_.empty()) { // the last one says what has been removed
      if (const unsigned removed = folder_.remove_oldest())
        std::fprintf(stderr, "assay: %s is full: %s of executables removed (--disk)\n",
                     folder_.path().c_str(), base::with_noun(removed, "file").c_str());
      malloc_trim(0);
    }
    try {
      if (const std::string said = folder_.add(std::move(part)); !said.empty())
        std::fprintf(stderr, "assay: %s\n", said.c_str());
    } catch (const base::Failure &failure) { // the next one may fit
      const std::string lost =
          samples ? base::format_counted(samples, "sample is", "samples are") : "its values are";
      std::fprintf(stderr, "assay: %s; %s lost\n", failure.what(), lost.c_str());
      has_failed_ = true;
    }
  }

  const RecordArguments &arguments_;
  values::RecordingSettings settings_;
  std::chrono::microseconds rotation_, duration_{0};
  values::ProfileFolder folder_;
  std::unique_ptr<values::Recording> recording_;
  Clock::time_point taken_;
  std::deque<values::ProfilePart> parts_;
  uint64_t samples_ = 0;
  bool has_failed_ = false;
};

} // namespace

int record_as_daemon(const RecordArguments &arguments) {
  stop_when_asked();
  return Daemon(arguments).run();
}

} // namespace cli
