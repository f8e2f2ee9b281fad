#include "cli/source_folder.h"

#include "base/fail.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sys/wait.h>

namespace cli {

namespace fs = std::filesystem;

void copy_folder(const fs::path &from, const fs::path &to) {
  fs::create_directories(to);
  for (const fs::directory_entry &entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    if (name == ".git" || name == "assay.out")
      continue;
    if (entry.is_symlink())
      fs::copy_symlink(entry.path(), to / name);
    else if (entry.is_directory())
      copy_folder(entry.path(), to / name);
    else if (entry.is_regular_file())
      fs::copy_file(entry.path(), to / name);
  }
}

int run_in(const fs::path &folder, std::vector<std::string> command,
           const ChildSettings &settings) {
  std::vector<std::string> all = {"sh", "-c", "cd \"$0\" && exec \"$@\"", folder.string()};
  std::ranges::move(command, std::back_inserter(all));
  ChildStatus status = run_child(all, settings);
  if (status.start_error)
    base::fail("sh cannot be started");
  return WIFEXITED(status.wait_status) ? WEXITSTATUS(status.wait_status)
                                       : 128 + WTERMSIG(status.wait_status);
}

static std::vector<std::string> redirected(const char *script, const fs::path &file,
                                           const std::vector<std::string> &command) {
  std::vector<std::string> all = {"sh", "-c", script, file.string()};
  std::ranges::copy(command, std::back_inserter(all));
  return all;
}

std::vector<std::string> printing_to(const fs::path &file,
                                     const std::vector<std::string> &command) {
  return redirected("exec \"$@\" > \"$0\" 2> /dev/null", file, command);
}

std::vector<std::string> complaining_to(const fs::path &file,
                                        const std::vector<std::string> &command) {
  return redirected("exec \"$@\" 2> \"$0\"", file, command);
}

void check_clang_tool(const std::string &tool, int status) {
  if (status == 127)
    base::fail("{} is not on the PATH: apt-get install clang-tools-22", tool);
  if (status != 0)
    base::fail("{} failed with status {}: nothing was changed; give it the flags that the files "
               "are compiled with: --flags '-Iinclude'",
               tool, status);
}

void run_clang_tool(const SourceFolder &sources, std::vector<std::string> command,
                    const fs::path &output) {
  const std::string tool = command.front();
  std::ranges::copy(sources.files, std::back_inserter(command));
  command.emplace_back("--");
  std::ranges::copy(sources.flags, std::back_inserter(command));
  check_clang_tool(tool,
                   run_in(sources.path, output.empty() ? command : printing_to(output, command)));
}

std::string text_of(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

} // namespace cli
