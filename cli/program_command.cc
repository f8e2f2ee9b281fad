#include "cli/program_command.h"

#include "base/fail.h"
#include "base/mapped_file.h"
#include "profile/find_profiles.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace cli {

Action act_on_program(CommandLine line, std::string name, std::vector<std::string> &command,
                      std::function<int()> act) {
  line.ends_with_command(); // without --, the first word that is no option of ours begins the program's
  return [line, &command, name = std::move(name), act = std::move(act)](const Words &after_dashes) {
    auto rest = line.rest();
    if (!rest.empty() && rest.front().starts_with('-')) {
      std::fprintf(stderr,
                   "assay: %s: there is no option %s; `assay %s --help` lists them, and what "
                   "stands behind -- is the program's\n",
                   name.c_str(), rest.front().c_str(), name.c_str());
      return kOurFailure;
    }
    command.insert(command.end(), rest.begin(), rest.end());
    command.insert(command.end(), after_dashes.begin(), after_dashes.end());
    try {
      return act();
    } catch (const base::Failure &failure) {
      std::fprintf(stderr, "assay: %s\n", failure.what());
      return kOurFailure;
    }
  };
}

std::string executable_of(const std::string &program) {
  std::error_code error;
  if (program.find('/') != std::string::npos)
    return std::filesystem::weakly_canonical(program, error).string();
  const char *path = std::getenv("PATH");
  for (std::string rest = path ? path : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::filesystem::path candidate = std::filesystem::path(rest.substr(0, end)) / program;
    if (access(candidate.c_str(), X_OK) == 0)
      return std::filesystem::weakly_canonical(candidate, error).string();
    rest = end < rest.size() ? rest.substr(end + 1) : "";
  }
  return program;
}

static std::string inherited(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? std::string(":") + value : "";
}

// gcc's AddressSanitizer, which is a library of its own.
static bool names_libasan(const std::string &file) {
  try {
    const base::MappedFile mapped(file);
    const auto bytes = mapped.bytes();
    return std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size())
               .find("libasan.so") != std::string_view::npos;
  } catch (const base::Failure &) {
    return false;
  }
}

std::pair<std::string, std::string> preloading(const char *name) {
  const std::string library = std::filesystem::weakly_canonical(installed_folder() / name).string();
  if (access(library.c_str(), R_OK) != 0)
    base::fail("the file {} is missing; build or install Assay again", library);
  return {"LD_PRELOAD", library + inherited("LD_PRELOAD")};
}

// AddressSanitizer refuses to run behind a library that might define malloc.
std::vector<std::pair<std::string, std::string>> variables_beside(const std::string &program) {
  if (!names_libasan(executable_of(program)))
    return {};
  return {{"ASAN_OPTIONS", "verify_asan_link_order=0" + inherited("ASAN_OPTIONS")}};
}

std::string new_folder(const std::string &name, pid_t pid) {
  return std::filesystem::path(profile::kDefaultFolder) /
         fmt::format("{}-{}.{}", profile::run_time_text(std::time(nullptr)), name, pid);
}

// It has the name of what was executed in the end, which may be another than that of the command
// (env, a symbolic link).
std::string folder_of_run(const std::string &name, pid_t pid, std::time_t since) {
  const std::string first = profile::run_time_text(since),
                    last = profile::run_time_text(std::time(nullptr)),
                    end = fmt::format(".{}", pid);
  std::string newest;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(profile::kDefaultFolder, error), none;
       !error && entry != none; entry.increment(error)) {
    const std::string folder = entry->path().filename(), time = folder.substr(0, first.size());
    if (folder.ends_with(end) && time >= first && time <= last && folder > newest)
      newest = folder;
  }
  if (newest.empty())
    return new_folder(name, pid);
  return std::filesystem::path(profile::kDefaultFolder) / newest;
}

int why_not_writable(std::filesystem::path folder) {
  while (!folder.empty() && access(folder.c_str(), F_OK) != 0 && errno == ENOENT)
    folder = folder.parent_path();
  return access(folder.empty() ? "." : folder.c_str(), W_OK) == 0 ? 0 : errno;
}

int say_not_started(const std::string &program, const ChildStatus &status) {
  constexpr int kCannotExecute = 126, kNotFound = 127;
  std::fprintf(stderr, "assay: %s: it cannot be run: %s\n", program.c_str(),
               std::strerror(status.start_error));
  return status.start_error == ENOENT ? kNotFound : kCannotExecute;
}

} // namespace cli
