// `assay values record`: samples the values of a command, a process or all processes.
//
// A command that does not load our library is not known until it has ended: if no program was met
// by then, why_not_inside() looks at its file for the reason. A command's status is its own, so a
// profile that cannot be written is only said. Other processes are watched until Ctrl-C, the end of
// --duration or their end, and what was measured so far is kept. Whether the place of -o can be
// written is asked before anything runs.

#include "cli/values_record.h"

#include "abi/records.h"
#include "base/fail.h"
#include "base/shell_words.h"
#include "base/units.h"
#include "cli/keep_files.h"
#include "cli/memory_limit.h"
#include "cli/output.h"
#include "cli/program_command.h"
#include "cli/temporary_folder.h"
#include "image/elf.h"
#include "profile/find_profiles.h"
#include "values/choose_collector.h"
#include "values/process_maps.h"
#include "values/renewed_recording.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kManyInside = 25'000; // samples a second of a program that interprets itself
// Of samples that are due by processor time: when it is said that fewer came.
constexpr uint64_t kFewDue = 250;
constexpr double kEnough = .75;

void ask_to_stop(int) {
  asked_to_stop = 1;
}

// Also of a process that its parent has not asked for yet.
bool has_ended(pid_t pid) {
  const std::vector<std::string> words = values::status_words(static_cast<uint32_t>(pid));
  return words.empty() || words.front() == "Z" || words.front() == "X";
}

} // namespace

volatile std::sig_atomic_t asked_to_stop;

void stop_when_asked() {
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  struct sigaction hangup = {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) // by nohup
    std::signal(SIGHUP, ask_to_stop);
}

namespace {

bool takes_rights(const std::string &file) {
  struct stat status = {};
  return stat(file.c_str(), &status) == 0 && status.st_mode & (S_ISUID | S_ISGID);
}

// Why a program has not loaded what samples it from inside, and what to do.
std::string why_not_inside(const std::string &file) {
  const std::string in_kernel = "; record as root, in the kernel (`--collector kernel`)";
  if (takes_rights(file))
    return "it takes another user's or group's rights (setuid), and so loads nothing of ours; "
           "record all processes (-a) as root meanwhile";
  const char *const otherwise =
      "it has not loaded what LD_PRELOAD names, or could not open what it shares with us";
  try {
    return (image::needs_loader(file) ? otherwise
                                      : "it is linked statically, and so loads nothing of ours") +
           in_kernel;
  } catch (const base::Failure &) { // a script
    return otherwise + in_kernel;
  }
}

uint32_t scope_of(const RecordArguments &arguments) {
  return arguments.all               ? ASSAY_SAMPLING_SYSTEM
         : arguments.command.empty() ? ASSAY_SAMPLING_PROCESS
                                     : ASSAY_SAMPLING_COMMAND;
}

// In seconds.
struct ProcessorTime {
  double user = 0, all = 0;
};

// Of children that have ended and were waited for, and of theirs.
ProcessorTime time_of_children() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  auto seconds = [](const timeval &time) {
    return double(time.tv_sec) + double(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

// One recording from its first sample to its profile.
class Session {
public:
  explicit Session(const RecordArguments &arguments)
      : arguments_(arguments), settings_(settings_of(arguments)),
        chosen_(values::choose_collector(arguments.collector, settings_.sampling,
                                         !arguments.command.empty())),
        recording_(std::move(chosen_.collector), settings_, scope_of(arguments)) {
    if (!arguments.duration.empty())
      duration_ = duration_of(arguments);
  }

  int record_command() {
    ChildSettings child;
    if (is_inside() && settings_.sampling.hertz > kManyInside)
      std::fprintf(stderr,
                   "assay: -F %s: each sample takes some 20 us of the program's own time, so that "
                   "it runs several times slower; choose 20k or less\n",
                   arguments_.hertz.c_str());
    if (is_inside()) {
      child.environment = variables_beside(arguments_.command.front());
      child.environment.push_back(preloading("libassay_upcall.so"));
      child.environment.push_back(recording_.collector().environment());
    }
    child.before_exec = [&](pid_t pid) {
      recording_.collector().watch_command(pid);
      begin(pid);
    };
    child.meanwhile = [&] {
      if (!poll())
        usleep(10'000);
    };
    const ProcessorTime before = time_of_children();
    const ChildStatus status = run_child(arguments_.command, child);
    const ProcessorTime after = time_of_children();
    used_ = {after.user - before.user, after.all - before.all};
    const std::string &program = arguments_.command.front();
    if (status.start_error)
      return say_not_started(program, status);
    try { // the program has run: its status counts
      finish();
    } catch (const base::Failure &failure) {
      std::fprintf(stderr, "assay: %s\n", failure.what());
    } catch (const std::bad_alloc &) {
      say_memory_is_used_up();
    }
    end_like(status.wait_status);
  }

  int record_others() {
    if (arguments_.all)
      recording_.collector().watch_all();
    else
      recording_.collector().watch_process(arguments_.pid);
    begin(arguments_.pid);
    if (const std::string why = recording_.collector().why_no_kernel_code(); !why.empty())
      std::fprintf(stderr, "assay: the kernel's own code is not interpreted: %s\n", why.c_str());
    std::fprintf(stderr, "assay: sampling %s%s\n", sampled_name(arguments_).c_str(),
                 duration_ ? "" : "; Ctrl-C ends it");
    while (!asked_to_stop && !is_over() && !(arguments_.pid && has_ended(arguments_.pid)))
      if (!poll())
        break;
    finish();
    return 0;
  }

private:
  bool is_inside() const { return recording_.collector().kind() != ASSAY_COLLECTOR_KERNEL; }

  void begin(pid_t pid) {
    begin_ = shown_ = Clock::now();
    process_ = process_of(arguments_, pid);
    pid_ = pid;
  }

  bool is_over() const { return duration_ && Clock::now() - begin_ >= *duration_; }

  // False once it cannot go on: what came until then is kept, and the program goes on.
  bool poll() {
    if (has_failed_)
      return false;
    try {
      recording_.poll(10, process_);
    } catch (const base::Failure &failure) {
      fail(failure.what());
    } catch (const std::bad_alloc &) {
      fail("memory is used up");
    }
    if (is_over()) {
      stop();
      was_cut_ = true;
    }
    const auto now = Clock::now();
    // A command has the terminal for itself.
    if (isatty(STDERR_FILENO) && arguments_.command.empty() &&
        now - shown_ >= std::chrono::milliseconds(500)) {
      shown_ = now;
      const auto p = recording_.progress();
      std::fprintf(stderr, "\rassay: %.0f s, %s, %s at %s ",
                   std::chrono::duration<double>(now - begin_).count(),
                   base::format_counted(double(p.samples), "sample").c_str(),
                   base::format_counted(double(p.values), "value").c_str(),
                   base::format_counted(double(p.places), "place").c_str());
      has_shown_ = true;
    }
    return !has_failed_;
  }

  void fail(const char *why) {
    end_progress();
    std::fprintf(stderr, "assay: %s; the sampling has stopped, and what came until now is kept\n",
                 why);
    stop();
    has_failed_ = was_cut_ = true;
  }

  // What is said next begins a line of its own.
  void end_progress() {
    if (has_shown_)
      std::fputc('\n', stderr);
    has_shown_ = false;
  }

  void stop() {
    if (stopped_)
      return;
    recording_.stop();
    stopped_ = Clock::now();
  }

  void finish() {
    stop();
    // Of the sampling: a command may have gone on behind it.
    const auto duration = std::chrono::duration_cast<std::chrono::microseconds>(*stopped_ - begin_);
    for (int i = 0; i < 3 && !has_failed_; i++)
      recording_.poll(0, process_);
    end_progress();
    process_.executable = resolved_executable();
    process_.ends = {{ASSAY_END_EXIT, 0, static_cast<uint64_t>(duration.count())}};
    const std::set<uint32_t> pids = recording_.pids();
    profile::Profile profile =
        recording_.profile(process_, static_cast<uint64_t>(duration.count()));
    const auto p = recording_.progress();
    const std::string missing = missing_samples(profile) + processes_left(profile, pids);
    if (is_inside() && p.programs == 0)
      base::fail("{}: it was not sampled: {}", arguments_.command.front(),
                 why_not_inside(process_.executable));
    const std::string file = write(profile);
    const bool is_found = // without being named
        arguments_.output.empty() && file.starts_with(std::string(profile::kDefaultFolder) + "/");
    if (is_found && !arguments_.all)
      keep_files(profile, fs::path(file).parent_path());
    std::fprintf(stderr, "assay: %s in %s, %s at %s; by %s\n",
                 base::format_counted(double(profile.values.samples), "sample").c_str(),
                 base::format_duration_us(double(duration.count())).c_str(),
                 base::format_counted(double(p.values), "value").c_str(),
                 base::format_counted(double(profile.values.values.size()), "place").c_str(),
                 recording_.collector().clock().c_str());
    std::fprintf(stderr, "assay: collector %s, %s\n",
                 values::collector_meaning(recording_.collector().kind()).c_str(),
                 chosen_.why.c_str());
    if (p.lost)
      std::fprintf(stderr, "assay: %s lost; choose a lower rate with -F\n",
                   base::format_counted(double(p.lost), "sample was", "samples were").c_str());
    std::fputs(missing.c_str(), stderr);
    for (const std::string &word : recording_.code().words_without_callers())
      std::fprintf(stderr,
                   "assay: no sample was taken in a function whose name has `%s`, so --callers "
                   "found none; names are those of the symbol table, as nm prints them\n",
                   word.c_str());
    std::fprintf(stderr, "assay: profile in %s\nassay: next: assay values report%s\n", file.c_str(),
                 is_found ? "" : (" " + base::shell_word(file)).c_str());
    if (is_found && profile::profiles_in_run(fs::path(file).parent_path()).size() > 1)
      std::fputs("assay: next: assay report\n", stderr);
  }

  // How many samples were due for the processor time of a command that was waited for, and how many
  // came, where that is much less. A thread's clock begins with the thread, so one that ends before the first
  // sample is due has none. From inside, time in the kernel has no samples.
  std::string missing_samples(profile::Profile &profile) const {
    if (arguments_.command.empty() || was_cut_)
      return "";
    uint64_t came = profile.values.samples + recording_.progress().lost;
    if (is_inside())
      came -= std::min(came, profile.values.ends[ASSAY_ENDED_kernel]);
    const double seconds = is_inside() ? used_.user : used_.all;
    const auto due = static_cast<uint64_t>(seconds * double(settings_.sampling.hertz));
    if (due < kFewDue || double(came) >= kEnough * double(due))
      return "";
    profile.losses[ASSAY_LOSS_missed_samples] += due - came;
    const char *const why =
        takes_rights(process_.executable)
            ? "the program takes another user's or group's rights (setuid), where the kernel ends "
              "its sampling; sample all processes meanwhile (-a)"
            : "threads and children that run for a moment only are sampled too rarely, those that "
              "take another user's rights (setuid) not at all, and the others' shares are too "
              "large; sample all processes meanwhile (-a), whose clock is each processor's, or "
              "choose a higher rate (-F)";
    return fmt::format("assay: {} due for {} of processor time{}, and {} came: {}\n",
                       base::format_counted(double(due), "sample was", "samples were"),
                       base::format_duration_us(seconds * 1e6),
                       is_inside() ? " outside of the kernel" : "",
                       base::format_count(double(came)), why);
  }

  // Which processes of a command run on behind its end.
  std::string processes_left(profile::Profile &profile, const std::set<uint32_t> &pids) const {
    if (arguments_.command.empty() || was_cut_)
      return "";
    std::string list;
    uint64_t left = 0;
    for (uint32_t pid : pids)
      if (static_cast<pid_t>(pid) != pid_ && !has_ended(static_cast<pid_t>(pid)) && ++left <= 3)
        list += fmt::format("{}{}", left > 1 ? ", " : "", pid);
    if (!left)
      return "";
    profile.losses[ASSAY_LOSS_left_processes] += left;
    return fmt::format("assay: {} on ({}{}) when the command had ended, and {} not sampled from "
                       "there on; record with -p PID, or let the command wait\n",
                       base::format_counted(double(left), "process ran", "processes ran"), list,
                       left > 3 ? ", …" : "", left > 1 ? "are" : "is");
  }

  // The file of a command, by what was executed.
  std::string resolved_executable() const {
    return arguments_.command.empty() ? process_.executable
                                      : executable_of(arguments_.command.front());
  }

  // Where the place has become full, or read-only, what was measured goes where temporary files go.
  std::string write(const profile::Profile &profile) const {
    try {
      std::string file = file_to_write();
      profile::write(profile, file);
      return file;
    } catch (const base::Failure &failure) {
      const std::string file =
          folder_for_temporary_files() / fmt::format("assay-values.{}.assay", getpid());
      std::fprintf(stderr, "assay: %s\n", failure.what());
      profile::write(profile, file);
      return file;
    }
  }

  std::string file_to_write() const {
    if (!arguments_.output.empty())
      return arguments_.output;
    const fs::path folder = folder_of_run(sampled_name(arguments_), pid_ ? pid_ : getpid(),
                                          static_cast<time_t>(process_.start_unix_ns / kSecondNs));
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      base::fail("{}: the folder for profiles cannot be made: {}; choose a file with -o",
                 folder.string(), error.message());
    return folder / "values.assay";
  }

  const RecordArguments &arguments_;
  values::RecordingSettings settings_;
  values::ChosenCollector chosen_;
  values::RenewedRecording recording_;
  profile::Process process_;
  pid_t pid_ = 0;
  Clock::time_point begin_, shown_;
  std::optional<std::chrono::microseconds> duration_;
  std::optional<Clock::time_point> stopped_;
  ProcessorTime used_;   // by a command
  bool was_cut_ = false; // sampling ended before the command
  bool has_failed_ = false;
  bool has_shown_ = false;
};

// Before anything runs: can the profile be written there?
void check_place(const RecordArguments &arguments) {
  if (!arguments.output.empty())
    return cli::check_place(arguments.output);
  if (const int error = why_not_writable(profile::kDefaultFolder))
    base::fail("{}: its folder cannot be written: {}; choose another place with -o",
               profile::kDefaultFolder, std::strerror(error));
}

int record(const RecordArguments &arguments) {
  const int what = !arguments.command.empty() + (arguments.pid != 0) + arguments.all;
  if (what == 0)
    base::fail(
        "values record: what is to be sampled? write `assay values record -- ./app`, `-p PID`, or "
        "`-a` for all processes");
  if (what > 1)
    base::fail("values record: a command, -p and -a exclude each other; leave all but one out");
  if (!arguments.duration.empty())
    duration_of(arguments); // before a folder is made
  if (arguments.daemon)
    return record_as_daemon(arguments);
  check_place(arguments);
  if (arguments.command.empty()) { // what was measured so far is kept
    stop_when_asked();
  }
  Session session(arguments);
  return arguments.command.empty() ? session.record_others() : session.record_command();
}

} // namespace

Action define_values_record(CommandLine line) {
  auto arguments = std::make_shared<RecordArguments>();
  RecordArguments &a = *arguments;
  line.add_option("-o,--output", a.output,
                  "write the profile to this file (assay.out/TIME-PROGRAM.PID/values.assay)");
  line.add_option("-F", a.hertz, "samples a second of each cpu (5k)");
  line.add_option(
      "-k", a.instructions,
      "instructions that are interpreted of a sample, on average (16; 128 with --conflicts)");
  line.add_option("--skip", a.skip,
                  "interpret up to so many instructions before the first that is recorded, as "
                  "chance has it (0)");
  line.add_flag("--even", a.even,
                "weigh samples, so that each execution counts the same, and not each moment");
  line.add_flag("--fixed", a.fixed,
                "exactly -k instructions of each sample, not from 1 to twice as many");
  line.add_option("-p", a.pid,
                  "sample this process, with all its threads, until it ends or Ctrl-C");
  const DeclaredOption all = line.add_flag("-a", a.all, "sample all processes, until Ctrl-C");
  line.add_option("--duration", a.duration, "stop after this time, such as 10s");
  line.add_flag("--user-code", a.user_code,
                "of -a: leave out what the kernel does; its samples are counted only")
      .needs(all);
  const DeclaredOption daemon =
      line.add_flag("--daemon", a.daemon,
                    "of -a: add what was measured to a file for each executable in the folder -o, "
                    "now and then, and go on; with little memory and disk")
          .needs(all);
  line.add_option("--rotate", a.rotate, "how often --daemon writes (1min)").needs(daemon);
  line.add_option("--disk", a.disk,
                  "what the folder of --daemon may hold; beyond it, what was not sampled for the "
                  "longest time is removed (256MiB)")
      .needs(daemon);
  line.add_option("--record", a.record, "only these kinds of values: " + kind_words());
  line.add_option(
      "--callers", a.callers,
      "at each instruction of functions whose linkage names contain one of these words, "
      "record where the function returns to; `all`: of all functions");
  line.add_flag("--conflicts", a.conflicts,
                "compare the addresses of stores and loads, for `assay values conflicts`");
  line.add_flag("--latency", a.latency,
                "time loads, and say which level of the memory hierarchy answered; of a command");
  line.add_option(
      "--collector", a.collector,
      "who interprets: kernel (BPF), upcall (the program itself, by perf events), timer (the "
      "program itself, by timers); auto: the first of them that this user may have (auto)");
  line.add_option("--hotlist", a.hotlist,
                  "how values are counted: space-saving, counting, concise (space-saving)");
  line.add_option("--seed", a.seed, "of the coins that counting and concise samples flip (1)");
  line.set_footer(
      "\nExamples:\n  assay values record -- ./app --its-own-option\n  assay values record "
      "-a --duration 10s -F 1k\n  assay values record -a --daemon -F 1k -o /var/lib/assay\n");
  return act_on_program(line, "values record", arguments->command,
                        [arguments] { return record(*arguments); });
}

} // namespace cli
