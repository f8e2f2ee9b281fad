// Starting a program and taking its status.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace cli {

struct ChildSettings {
  bool no_aslr = false;
  bool quiet = false; // standard input, output and error are /dev/null
  int output = -1;    // a descriptor, for standard output and error instead
  // Set on top of ours; {pid} in a value becomes the child's process id.
  std::vector<std::pair<std::string, std::string>> environment;
  // Called once in this process, while the child waits to execute the program. If it throws, the
  // program is not executed.
  std::function<void(pid_t)> before_exec;
  // Called again and again while the program runs; it should take some milliseconds.
  std::function<void()> meanwhile;
};

struct ChildStatus {
  pid_t pid = 0;
  int wait_status = 0;    // of waitpid
  int start_error = 0;    // errno of exec; 0 if it started
  int asked_by = 0;       // the last signal that would have ended this process; 0: none came
  bool aslr_kept = false; // no_aslr was asked for and refused; then it was not started
};

// Runs the program to its end. Meanwhile signals that would end this process are passed on to the
// program; of those of a terminal, it has its own. Throws Failure when no process can be made.
ChildStatus run_child(const std::vector<std::string> &command, const ChildSettings &settings);

// Ends this process the way that the child ended: same exit status or same signal.
[[noreturn]] void end_like(int wait_status);

// The folder of this program, and that of the plugin and the runtime beside it.
std::filesystem::path own_folder();
std::filesystem::path installed_folder();

} // namespace cli
