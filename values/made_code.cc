// The file is another process's, and anybody may put one into /tmp: it is read only if it is a
// plain file of the process's user or of root's, only names are taken from it, and no more of it
// than fits. It grows while the process makes code, so it is read on from where it was left; asked
// is what has changed of it, for each place in code. A line without an end is left for the next
// time.
//
// A process in a container has its own /tmp and its own number there. Files stay when their
// processes end, and numbers are used again: what is older than the process is not its own.

#include "values/made_code.h"

#include "values/process_maps.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace values {
namespace {

constexpr uint64_t kMaxBytes = 64 << 20;  // of a file; what stands behind is not read
constexpr size_t kMaxFunctions = 300'000; // of a process
constexpr size_t kMaxProcesses = 64;      // that are remembered
constexpr size_t kLongestName = 400, kLongestLine = 1 << 16;
constexpr int64_t kSecond = 1'000'000'000;

// Its number in its own namespace, which is the last one that is told.
std::string own_number(uint32_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("NSpid:"))
      return line.substr(line.find_last_of(" \t") + 1);
  return std::to_string(pid);
}

// When the process began, CLOCK_REALTIME; 0: it is not known, because it has ended.
int64_t begin_of(uint32_t pid) {
  constexpr size_t kStartTime = 19; // in ticks since the system began
  const std::vector<std::string> words = status_words(pid);
  timespec real = {}, boot = {};
  if (words.size() <= kStartTime || clock_gettime(CLOCK_REALTIME, &real) != 0 ||
      clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
    return 0;
  const auto ticks = static_cast<int64_t>(std::strtoull(words[kStartTime].c_str(), nullptr, 10));
  return (real.tv_sec - boot.tv_sec) * kSecond + real.tv_nsec - boot.tv_nsec +
         ticks * (kSecond / sysconf(_SC_CLK_TCK));
}

int64_t changed_at(const struct stat &file) {
  return file.st_mtim.tv_sec * kSecond + file.st_mtim.tv_nsec;
}

bool may_be_believed(const struct stat &file, uint32_t pid) {
  struct stat process = {};
  return S_ISREG(file.st_mode) && (file.st_uid == 0 || file.st_uid == geteuid() ||
                                   (stat(fmt::format("/proc/{}", pid).c_str(), &process) == 0 &&
                                    file.st_uid == process.st_uid));
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
  if (function.name.find_first_not_of(' ') == std::string::npos)
    return;
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

void MadeCode::read_on(uint32_t pid, Process &process) {
  for (const std::string &path : process.paths) {
    struct stat found = {};
    if (lstat(path.c_str(), &found) != 0)
      continue;
    const int64_t changed = changed_at(found);
    const auto size = static_cast<uint64_t>(found.st_size);
    if (found.st_ino == process.inode && size == process.size && changed == process.changed_ns)
      return;
    if (!may_be_believed(found, pid) || changed + kSecond < process.began_ns)
      continue;
    // A pipe must not be waited for.
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file < 0)
      continue;
    std::string last_line(process.last_line.size(), '\0');
    const auto last_at = static_cast<off_t>(process.read - last_line.size());
    if (found.st_ino != process.inode || size < process.read ||
        pread(file, last_line.data(), last_line.size(), last_at) !=
            static_cast<ssize_t>(last_line.size()) ||
        last_line != process.last_line) { // another one
      process.map = {};
      process.read = 0;
      process.last_line.clear();
      process.is_bad = false;
    }
    process.inode = found.st_ino;
    process.size = size;
    process.changed_ns = changed;
    std::string text(1 << 16, '\0'), line;
    for (ssize_t bytes; !process.is_bad && process.read + line.size() < kMaxBytes &&
                        process.map.size() < kMaxFunctions &&
                        (bytes = pread(file, text.data(), text.size(),
                                       static_cast<off_t>(process.read + line.size()))) > 0;) {
      line.append(text.data(), static_cast<size_t>(bytes));
      size_t begin = 0;
      for (size_t end; (end = line.find('\n', begin)) != std::string::npos; begin = end + 1) {
        process.last_line = line.substr(begin, end + 1 - begin);
        process.map.add_line(line.substr(begin, end - begin));
      }
      process.read += begin;
      line.erase(0, begin);
      process.is_bad = line.size() >= kLongestLine;
    }
    close(file);
    return;
  }
}

const PerfMap::Function *MadeCode::function_at(uint32_t pid, uint64_t address) {
  if (processes_.size() > kMaxProcesses && !processes_.contains(pid))
    processes_.clear();
  Process &process = processes_[pid];
  if (process.paths.empty()) { // once: most processes tell nothing, and are asked for each place
    process.paths = {fmt::format("/proc/{}/root/tmp/perf-{}.map", pid, own_number(pid)),
                     fmt::format("/tmp/perf-{}.map", pid)};
    process.began_ns = begin_of(pid);
  }
  read_on(pid, process);
  return process.map.function_at(address);
}

} // namespace values
