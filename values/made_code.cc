// The file is another process's, and anybody may put one into /tmp: it is read only if it is a plain file of the process's user or of root's,
// and only names are taken from it. It grows while the process makes code, so it is read on from where it was left. A line without an end is
// left for the next time.
//
// A process in a container has its own /tmp and its own number there.

#include "values/made_code.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace values {
namespace {

constexpr uint64_t kMostBytes = 256 << 20; // of a file; what stands behind is not read
constexpr size_t kLongestName = 400;

// Its number in its own namespace, which is the last one that is told.
std::string own_number(uint32_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("NSpid:"))
      return line.substr(line.find_last_of(" \t") + 1);
  return std::to_string(pid);
}

// -1 if there is none that may be believed.
int open_map(uint32_t pid, const std::vector<std::string> &paths) {
  for (const std::string &path : paths) {
    // A pipe must not be waited for.
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file < 0)
      continue;
    struct stat found = {}, owner = {};
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) &&
        (found.st_uid == 0 || found.st_uid == geteuid() ||
         (stat(fmt::format("/proc/{}", pid).c_str(), &owner) == 0 && found.st_uid == owner.st_uid)))
      return file;
    close(file);
  }
  return -1;
}

} // namespace

const PerfMap::Function *PerfMap::function_at(uint64_t address) const {
  auto after = functions_.upper_bound(address);
  if (after == functions_.begin())
    return nullptr;
  const Function &function = std::prev(after)->second;
  return address < function.end ? &function : nullptr;
}

void PerfMap::add_line(const std::string &line) {
  char *rest = nullptr;
  const uint64_t begin = std::strtoull(line.c_str(), &rest, 16);
  if (*rest != ' ')
    return;
  const uint64_t size = std::strtoull(rest + 1, &rest, 16);
  if (*rest != ' ' || size == 0 || begin + size < begin)
    return;
  Function function = {begin, begin + size, std::string(rest + 1).substr(0, kLongestName)};
  for (char &c : function.name)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) // for a terminal
      c = ' ';
  auto at = functions_.lower_bound(begin);
  if (at != functions_.begin() && std::prev(at)->second.end > begin)
    at--;
  while (at != functions_.end() && at->first < function.end)
    at = functions_.erase(at);
  functions_.emplace(begin, std::move(function));
}

bool MadeCode::read_on(uint32_t pid, Process &process) {
  if (process.read >= kMostBytes)
    return false;
  const int file = open_map(pid, process.paths);
  if (file < 0)
    return false;
  std::string text;
  char buffer[1 << 16];
  for (ssize_t bytes; process.read + text.size() < kMostBytes &&
                      (bytes = pread(file, buffer, sizeof buffer,
                                     static_cast<off_t>(process.read + text.size()))) > 0;)
    text.append(buffer, static_cast<size_t>(bytes));
  close(file);
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    process.map.add_line(text.substr(begin, end - begin));
  process.read += begin;
  return begin > 0;
}

const PerfMap::Function *MadeCode::function_at(uint32_t pid, uint64_t address) {
  Process &process = processes_[pid];
  if (process.paths.empty()) // once: most processes tell nothing, and are asked for each place
    process.paths = {fmt::format("/proc/{}/root/tmp/perf-{}.map", pid, own_number(pid)),
                     fmt::format("/tmp/perf-{}.map", pid)};
  const PerfMap::Function *known = process.map.function_at(address);
  return known || !read_on(pid, process) ? known : process.map.function_at(address);
}

} // namespace values
