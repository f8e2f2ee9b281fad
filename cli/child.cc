// fork and exec with an error report: the child writes errno into a pipe that closes on exec, so
// that "no such program" (127) is told apart from a program that returns 127. posix_spawn was
// refused: it cannot turn off address randomization.

#include "cli/child.h"

#include "base/fail.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
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

volatile pid_t child_to_end;

void pass_on(int signal) {
  kill(child_to_end, signal);
}

[[noreturn]] void become(const std::vector<std::string> &command, const ChildSettings &settings,
                         int report) {
  int error = 0;
  for (const auto &[name, value] : settings.environment)
    setenv(name.c_str(), with_pid(value).c_str(), 1);
  if (settings.quiet) {
    int null = open("/dev/null", O_RDWR);
    for (int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      if (null >= 0)
        dup2(null, standard);
  }
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
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0)
    base::fail("no pipe can be made: {}; close some files", std::strerror(errno));
  ChildStatus status;
  status.pid = fork();
  if (status.pid < 0)
    base::fail("no process can be started: {}; raise `ulimit -u`", std::strerror(errno));
  if (status.pid == 0)
    become(command, settings, report[1]);
  child_to_end = status.pid;
  auto old_terminate = std::signal(SIGTERM, pass_on), old_hangup = std::signal(SIGHUP, pass_on);
  auto old_interrupt = std::signal(SIGINT, SIG_IGN);
  auto old_quit = std::signal(SIGQUIT, SIG_IGN);
  close(report[1]);
  int error = 0;
  ssize_t got;
  while ((got = read(report[0], &error, sizeof(error))) < 0 && errno == EINTR)
    ;
  close(report[0]);
  while (waitpid(status.pid, &status.wait_status, 0) < 0 && errno == EINTR)
    ;
  std::signal(SIGINT, old_interrupt);
  std::signal(SIGQUIT, old_quit);
  std::signal(SIGTERM, old_terminate);
  std::signal(SIGHUP, old_hangup);
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
