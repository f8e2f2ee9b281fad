// A program that loads a file waits until the tool has moved the file's code, and its threads fill
// buffers that the tool must empty. So the recording is polled in turn with waiting for the
// program, in one thread.
//
// A failure of the tool must not end the program: the first one is said and stops the recording,
// and from then on the program's end is waited for. Only what fails before the program begins is
// thrown.

#include "cli/traced_run.h"

#include "base/fail.h"
#include "base/shell_words.h"
#include "base/units.h"
#include "cli/program_command.h"
#include "image/elf.h"
#include "image/executable.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <new>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace cli {

void add_choice(CommandLine line, TraceChoice &choice) {
  line.add_option("--only", choice.only, "only these functions");
  line.add_option("--module", choice.modules, "only these files, by their names or their paths");
}

void add_parts(CommandLine line, TraceChoice &choice) {
  line.add_option("--start-after", choice.start_after,
                  "record from then on: 2s, or 10M (accesses), from the program's begin");
  line.add_option("--stop-after", choice.stop_after,
                  "record no longer than this: 500ms, or 10M (accesses)");
  line.add_option("--window", choice.window, "record 10ms/1s: the first 10 ms of every second");
  line.add_option("--start-at", choice.start_at,
                  "record from each assay_mark of this name on (assay/annotate.h)");
  line.add_option("--stop-at", choice.stop_at, "and up to the next of this one");
  line.add_flag("--on-signal", choice.on_signal,
                "record from a SIGUSR1 that assay gets up to the next, and so on");
}

namespace {

volatile std::sig_atomic_t switches = 0;

} // namespace

trace::TraceParts parts_of(const TraceChoice &choice) {
  trace::TraceParts parts;
  for (const auto &[option, value] : {std::pair("--start-after", choice.start_after),
                                      {"--stop-after", choice.stop_after},
                                      {"--window", choice.window},
                                      {"--start-at", choice.start_at},
                                      {"--stop-at", choice.stop_at}})
    if (!value.empty())
      parts.asked.push_back(fmt::format("{} {}", option, value));
  if (choice.on_signal)
    parts.asked.push_back("--on-signal");
  if (!choice.start_after.empty())
    parts.start = trace::TracePoint::parse(choice.start_after, "--start-after");
  if (!choice.stop_after.empty())
    parts.stop = trace::TracePoint::parse(choice.stop_after, "--stop-after");
  if (!choice.window.empty())
    parts.set_window(choice.window);
  parts.start_mark = choice.start_at;
  parts.stop_mark = choice.stop_at;
  if (choice.on_signal)
    parts.switches = [] { return static_cast<uint32_t>(switches); };
  parts.check();
  return parts;
}

void take_switches(const TraceChoice &choice) {
  if (!choice.on_signal)
    return;
  std::signal(SIGUSR1, [](int) { switches = switches + 1; });
  std::fprintf(stderr, "assay: recording begins and ends with `kill -USR1 %d`\n", getpid());
}

namespace {

// Half a second and more for each MiB, in which the program stands still: who waits should know for what.
void say_what_takes_long(const std::string &path, uint64_t code) {
  constexpr uint64_t kMuch = 8 << 20;
  if (code >= kMuch)
    std::fprintf(
        stderr,
        "assay: %s of code of %s are moved first, which takes a while; name the files that "
        "matter with --module to leave it out\n",
        base::format_bytes(double(code)).c_str(), std::filesystem::path(path).filename().c_str());
}

// Of the user, as the XDG base directory specification says; empty if there is none. A home that does not exist is not
// made for it.
std::filesystem::path cache_folder() {
  const auto absolute = [](const char *variable) -> std::filesystem::path {
    const char *value = std::getenv(variable);
    return value && *value == '/' ? value : "";
  };
  const std::filesystem::path home = absolute("HOME");
  std::filesystem::path caches = absolute("XDG_CACHE_HOME");
  std::error_code ignored;
  if (caches.empty() && std::filesystem::is_directory(home, ignored))
    caches = home / ".cache";
  return caches.empty() ? caches : caches / "assay";
}

} // namespace

trace::RecordingSettings settings_of(const TraceChoice &choice,
                                     const std::filesystem::path &folder) {
  trace::RecordingSettings settings;
  settings.folder = folder;
  settings.cache = cache_folder();
  settings.only = choice.only;
  settings.modules = choice.modules;
  settings.moves = say_what_takes_long;
  settings.plans = choice.log == "values";
  if (choice.log == "values" || choice.log == "groups")
    settings.log = ASSAY_LOG_groups;
  else if (choice.log == "accesses")
    settings.log = ASSAY_LOG_accesses;
  else if (choice.log == "nothing")
    settings.log = ASSAY_LOG_nothing;
  else
    base::fail("--log {}: choose values, groups, accesses or nothing", choice.log);
  return settings;
}

TracedRun::TracedRun(const std::vector<std::string> &command,
                     const trace::RecordingSettings &settings, trace::TraceSink &sink)
    : command_(command), recording_(std::make_unique<trace::Recording>(settings, sink)) {}

namespace {

// Names that choose nothing are a slip of the user's, mostly.
void say_missing(const trace::Recording &recording) {
  for (const std::string &name : recording.files().missing_modules())
    std::fprintf(stderr,
                 "assay: no file %s was loaded, so --module %s chose nothing%s; `assay trace info` "
                 "lists the files\n",
                 name.c_str(), name.c_str(),
                 name.find(',') == std::string::npos ? "" : " (it is given once for each file)");
  for (const std::string &name : recording.files().missing_functions())
    std::fprintf(stderr,
                 "assay: no traced file has a function %s, so --only %s chose nothing; give the "
                 "name as `nm` or `nm -C` writes it, or an address within it\n",
                 name.c_str(), name.c_str());
}

} // namespace

ChildStatus TracedRun::run() {
  ChildSettings child;
  child.environment = variables_beside(command_.front());
  child.environment.push_back(preloading("libassay_relocated.so"));
  child.environment.push_back(recording_->environment());
  child.meanwhile = [&] {
    if (failure_)
      usleep(10'000);
    else
      guarded([&] { recording_->poll(std::chrono::milliseconds(10)); });
  };
  const ChildStatus status = run_child(command_, child);
  if (!failure_)
    guarded([&] { recording_->finish(status.wait_status); });
  if (!failure_ && recording_->progress().files)
    say_missing(*recording_);
  if (const size_t running = failure_ ? 0 : recording_->progress().running)
    std::fprintf(stderr,
                 "assay: %s on behind the command's end; what %s from then on is not recorded\n",
                 base::with_noun(running, "process runs", "processes run").c_str(),
                 running == 1 ? "it does" : "they do");
  return status;
}

std::string TracedRun::programs() const {
  constexpr size_t kMax = 4;
  const std::set<std::string> &all = recording_->files().programs();
  std::string text;
  size_t named = 0;
  for (const std::string &name : all) {
    if (named == kMax)
      return fmt::format("{} and {} more", text, all.size() - named);
    text += (named++ ? ", " : "") + name;
  }
  return text;
}

template <class Act> void TracedRun::guarded(Act act) {
  const auto stop = [this](const char *why) {
    std::fprintf(stderr, "assay: %s; the recording has stopped, the program goes on\n", why);
    recording_->stop();
    failure_ = true;
  };
  try {
    act();
  } catch (const base::Failure &failure) {
    stop(failure.what());
  } catch (const std::bad_alloc &) {
    stop("memory is used up");
  }
}

namespace {

// The loader brings no library of the user's into a program that gets rights which its user has not.
bool raises_rights(const std::string &file) {
  struct stat status;
  if (stat(file.c_str(), &status) != 0)
    return false;
  return (status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
         (status.st_mode & S_ISGID && status.st_gid != getegid()) ||
         (geteuid() != 0 && getxattr(file.c_str(), "security.capability", nullptr, 0) > 0);
}

} // namespace

void say_unreached(const std::string &program, const trace::Recording &recording, int wait_status) {
  const std::string file = executable_of(program);
  bool is_static = false, carries_runtime = false, is_elf = true;
  try {
    is_static = !image::needs_loader(file);
    carries_runtime = is_static && image::Executable(file).carries_runtime();
  } catch (const base::Failure &) { // a script, an ELF file of another kind
    is_elf = is_static;
  }
  // Without /proc nobody can open what is shared; our library was loaded, and has said so.
  const std::string shared = recording.environment().second;
  if ((!is_static || carries_runtime) && access(shared.c_str(), R_OK | W_OK) != 0)
    return;
  // The loader ends like this where a library or a symbol is missing.
  const bool has_failed = WIFSIGNALED(wait_status) || WEXITSTATUS(wait_status) == 127;
  if (carries_runtime)
    std::fprintf(stderr,
                 "assay: nothing of %s was traced; where nothing above says why, it raises its "
                 "rights (setuid), or was ended before it began\n",
                 program.c_str());
  else if (is_static)
    std::fprintf(stderr,
                 "assay: %s is linked statically, so it is not traced; make a copy that can be: "
                 "assay trace instrument %s -o %s\n",
                 program.c_str(), base::shell_word(program).c_str(),
                 base::shell_word(program + ".traced").c_str());
  else if (is_elf && raises_rights(file))
    std::fprintf(stderr,
                 "assay: %s raises its rights (setuid or a capability), so the loader does not "
                 "bring our library into it, and it is not traced; trace a copy without them\n",
                 program.c_str());
  else if (is_elf && has_failed)
    std::fprintf(stderr,
                 "assay: %s ended in the loader, before any code of its own ran, so there is "
                 "nothing to trace; run it without assay to see why\n",
                 program.c_str());
  else
    std::fprintf(stderr,
                 "assay: %s was not reached, so it is not traced: our library comes into 64-bit "
                 "programs by glibc's loader, not into those that are linked statically (assay "
                 "trace instrument), raise their rights or have another loader\n",
                 program.c_str());
}

} // namespace cli
