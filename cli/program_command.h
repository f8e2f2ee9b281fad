// What commands share that run a program which the user names: `assay run -- ./app`, `assay values record -- ./app`.
#pragma once

#include "cli/child.h"
#include "cli/command.h"

#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace cli {

// Declares that words which are no options begin the program's command, and returns the action: it
// puts that command into `command`, which must outlive it, and calls `act`. A failure of ours is
// said in one sentence; its status is kOurFailure. `name` is the command as users write it: "values
// record".
Action act_on_program(CommandLine line, std::string name, std::vector<std::string> &command,
                      std::function<int()> act);

// The file that a command executes, as a shell finds it; the command itself if it finds none.
std::string executable_of(const std::string &program);

// LD_PRELOAD for a program, with this library of ours, by its name in the installed folder, before
// what the user preloads. Throws Failure where it is missing.
std::pair<std::string, std::string> preloading(const char *library);

// What else that needs, where the library does not define malloc.
std::vector<std::pair<std::string, std::string>> variables_beside(const std::string &program);

// A new folder for what is recorded, in the folder where profiles are looked for; it is not made.
// `name` of what is recorded.
std::string new_folder(const std::string &name, pid_t pid);
// The one that this process has made since then for its own profile, so that both are read together; else a new one.
std::string folder_of_run(const std::string &name, pid_t pid, std::time_t since);

// Why files cannot be made in this folder, which is made first if it is not there: an error number; 0: they can.
int why_not_writable(std::filesystem::path folder);

// Says that the program could not be executed; the status for it.
int say_not_started(const std::string &program, const ChildStatus &status);

} // namespace cli
