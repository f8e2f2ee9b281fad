// fork and exec with an error report: the child writes errno into a pipe that closes on exec, so
// that "no such program" (127) is told apart from a program that returns 127. posix_spawn was
// refused: it cannot turn off address randomization.

#include "cli/child.h"

#include "base/fail.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cli {
namespace {

constexpr int kAslrKept = -1;

std::string with_pid(std::string value) {
  constexpr std::string_view kPlace = "{pid}";
  for (size_t at; (at = value.find(kPlace)) != std::string::npos;)
    value.replace(at, kPlace.size(), std::to_string(getpid()));
  return value;
}

volatile pid_t program = 0;
volatile sig_atomic_t last_signal = 0; // that came to us from outside

// What the terminal sends it sends to the program, too; and what the program sends its parent is not for itself.
void pass_on(int signal, siginfo_t *info, void *) {
  const bool is_of_terminal = (signal == SIGINT || signal == SIGQUIT) && info->si_code > 0;
  if (info->si_pid == program)
    return;
  last_signal = signal;
  if (!is_of_terminal)
    kill(program, signal);
}

// Who started us may have had SIGCHLD ignored (some daemons do), and then no status of a child could be asked for. The
// programs that we start inherit it as it was.
bool ignored_children = false;

// Since the first program was started the tool ignores SIGPIPE: the program's end is the tool's,
// whoever reads what it says. The next programs do not inherit that.
bool ignores_pipe = false;

// Signals that would end the tool before the program, which then had nobody to finish its
// recording, are the program's while this lives. Those for which the tool has a handler, or which
// it was told to ignore, stay. They wait until there is a program.
class PassedSignals {
public:
  PassedSignals() {
    ignored_children |= std::signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    sigemptyset(&passed_);
    for (int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE,
                       SIGVTALRM, SIGPROF, SIGXCPU, SIGIO, SIGPWR, SIGSTKFLT}) {
      struct sigaction now;
      if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaddset(&passed_, signal);
    }
    sigprocmask(SIG_BLOCK, &passed_, &mask_);
  }
  ~PassedSignals() {
    for (int signal = 1; signal < NSIG; signal++)
      if (sigismember(&passed_, signal) == 1 && signal != SIGPIPE)
        std::signal(signal, SIG_DFL);
    unblock();
  }
  PassedSignals(const PassedSignals &) = delete;
  PassedSignals &operator=(const PassedSignals &) = delete;

  void pass_to(pid_t child) {
    program = child;
    for (int signal = 1; signal < NSIG; signal++) {
      if (sigismember(&passed_, signal) != 1)
        continue;
      struct sigaction action = {};
      action.sa_sigaction = pass_on;
      action.sa_flags = SA_SIGINFO | SA_RESTART;
      // These two come of the tool's own doing: where nobody reads what it says, or where its time is limited.
      if (signal == SIGPIPE || signal == SIGXCPU)
        action.sa_handler = SIG_IGN, action.sa_flags = 0;
      sigaction(signal, &action, nullptr);
    }
    ignores_pipe |= sigismember(&passed_, SIGPIPE) == 1;
    unblock();
  }
  // In the child.
  void give_back() {
    if (ignores_pipe)
      std::signal(SIGPIPE, SIG_DFL);
    if (ignored_children)
      std::signal(SIGCHLD, SIG_IGN);
    unblock();
  }

private:
  void unblock() { sigprocmask(SIG_SETMASK, &mask_, nullptr); }

  sigset_t passed_, mask_;
};

// The program's limit is not the tool's, where it may be lifted.
void lift_own_time_limit() {
  const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_CPU, &unlimited);
}

// A pipe that is closed on exec.
struct Pipe {
  int ends[2];
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0)
      base::fail("no pipe can be made: {}; close some files", std::strerror(errno));
  }
};

ssize_t read_all_of_one(int from, void *to, size_t size) {
  ssize_t got;
  while ((got = read(from, to, size)) < 0 && errno == EINTR)
    ;
  return got;
}

[[noreturn]] void become(const std::vector<std::string> &command, const ChildSettings &settings,
                         int report, const Pipe &permission) {
  int error = 0;
  close(permission.ends[1]);
  char go = 0;
  if (read_all_of_one(permission.ends[0], &go, 1) != 1)
    _exit(127); // it is not wanted any more
  for (const auto &[name, value] : settings.environment)
    setenv(name.c_str(), with_pid(value).c_str(), 1);
  if (settings.quiet) {
    int null = open("/dev/null", O_RDWR);
    for (int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      if (null >= 0)
        dup2(null, standard);
  }
  if (settings.output >= 0)
    for (int standard : {STDOUT_FILENO, STDERR_FILENO})
      dup2(settings.output, standard);
  int now = settings.no_aslr ? personality(0xffffffff) : 0;
  if (settings.no_aslr &&
      (now == -1 || personality(static_cast<unsigned>(now) | ADDR_NO_RANDOMIZE) == -1)) {
    error = kAslrKept;
  } else {
    std::vector<char *> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string &argument : command)
      arguments.push_back(const_cast<char *>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    error = errno;
  }
  [[maybe_unused]] ssize_t written = write(report, &error, sizeof(error));
  _exit(127);
}

} // namespace

ChildStatus run_child(const std::vector<std::string> &command, const ChildSettings &settings) {
  Pipe report, permission;
  ChildStatus status;
  PassedSignals signals;
  status.pid = fork();
  if (status.pid < 0)
    base::fail("no process can be started: {}; raise `ulimit -u`", std::strerror(errno));
  if (status.pid == 0) {
    signals.give_back();
    become(command, settings, report.ends[1], permission);
  }
  last_signal = 0;
  signals.pass_to(status.pid);
  lift_own_time_limit();
  close(report.ends[1]);
  close(permission.ends[0]);
  std::exception_ptr failure;
  try {
    if (settings.before_exec)
      settings.before_exec(status.pid);
    [[maybe_unused]] ssize_t written = write(permission.ends[1], "", 1);
  } catch (...) {
    failure = std::current_exception();
  }
  close(permission.ends[1]);
  int error = 0;
  ssize_t got = read_all_of_one(report.ends[0], &error, sizeof(error));
  close(report.ends[0]);
  for (;;) {
    const pid_t ended =
        waitpid(status.pid, &status.wait_status, settings.meanwhile && !failure ? WNOHANG : 0);
    if (ended == status.pid)
      break;
    if (ended < 0 && errno != EINTR)
      base::fail("the program's end cannot be waited for: {}", std::strerror(errno));
    if (ended == 0)
      try {
        settings.meanwhile();
      } catch (...) { // the program goes on
        failure = std::current_exception();
      }
  }
  status.asked_by = last_signal;
  if (failure)
    std::rethrow_exception(failure);
  if (got == sizeof(error)) {
    status.aslr_kept = error == kAslrKept;
    status.start_error = status.aslr_kept ? 0 : error;
  }
  return status;
}

std::filesystem::path own_folder() {
  std::error_code error;
  std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) // no /proc
    own = std::filesystem::canonical((const char *)getauxval(AT_EXECFN), error);
  return own.parent_path();
}

std::filesystem::path installed_folder() {
  return own_folder() / "../lib/assay";
}

void end_like(int wait_status) {
  if (WIFEXITED(wait_status))
    std::exit(WEXITSTATUS(wait_status));
  int signal = WTERMSIG(wait_status);
  rlimit no_core = {0, 0}; // the program's own core is the one that matters
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  std::fflush(nullptr);
  kill(getpid(), signal);
  std::exit(128 + signal);
}

} // namespace cli
