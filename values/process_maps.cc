// /proc says as text what is mapped. A path may hold spaces, so a name is the rest of its line. The
// device's number is put together as the kernel does it, because the kernel's program names files
// by that number. The links in map_files may be closed to this user; who opens a file tries its
// name next.

#include "values/process_maps.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <sys/uio.h>

namespace values {
namespace {

constexpr size_t kMaxProcesses = 256; // that are remembered
constexpr int kAskedAgain = 20;       // after so many times as long as it takes

// The kernel writes a newline in a name as \012, and nothing else so.
std::string name_of(std::string text) {
  constexpr std::string_view kNewline = "\\012";
  for (size_t at = 0; (at = text.find(kNewline, at)) != std::string::npos; at++)
    text.replace(at, kNewline.size(), "\n");
  return text;
}

} // namespace

std::vector<MappedRange> mapped_ranges(uint32_t pid) {
  std::vector<MappedRange> ranges;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  std::string line;
  while (std::getline(maps, line)) {
    MappedRange range;
    char access[8] = "";
    int name_at = 0;
    unsigned major = 0, minor = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n",
                    &range.start, &range.end, access, &range.file_offset, &major, &minor,
                    &range.inode, &name_at) < 7)
      continue;
    range.device = major << 20 | minor;
    range.is_executable = access[2] == 'x';
    if (name_at > 0 && static_cast<size_t>(name_at) < line.size())
      range.name = name_of(line.substr(static_cast<size_t>(name_at)));
    ranges.push_back(std::move(range));
  }
  return ranges;
}

const MappedRange *range_at(const std::vector<MappedRange> &ranges, uint64_t address) {
  auto after =
      std::upper_bound(ranges.begin(), ranges.end(), address,
                       [](uint64_t a, const MappedRange &range) { return a < range.start; });
  if (after == ranges.begin())
    return nullptr;
  const MappedRange &range = *std::prev(after);
  return address < range.end ? &range : nullptr;
}

const MappedRange *ProcessMaps::range_at(uint32_t pid, uint64_t address,
                                         std::chrono::milliseconds max_age) {
  if (known_.size() > kMaxProcesses)
    known_.clear();
  auto [entry, is_new] = known_.try_emplace(pid);
  Known &known = entry->second;
  const auto now = Clock::now();
  if (is_new || now - known.when >= max_age) {
    known.when = now;
    if (auto ranges = mapped_ranges(pid); !ranges.empty())
      known.ranges = std::move(ranges);
    known.took = Clock::now() - now;
  }
  return values::range_at(known.ranges, address);
}

const MappedRange *ProcessMaps::file_at(uint32_t pid, uint64_t address,
                                        std::chrono::milliseconds max_age) {
  const MappedRange *range = range_at(pid, address, max_age);
  if (range && range->is_file())
    return range;
  const Known &known = known_.at(pid);
  if (Clock::now() - known.when < kAskedAgain * known.took)
    return nullptr;
  range = range_at(pid, address, kNow);
  return range && range->is_file() ? range : nullptr;
}

std::string path_of_mapping(uint32_t pid, const MappedRange &range) {
  return fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, range.start, range.end);
}

std::vector<std::byte> process_memory(uint32_t pid, uint64_t address, size_t size) {
  std::vector<std::byte> bytes(size);
  size_t done = 0;
  while (done < size) {
    // Page by page: a read that comes to a page that is not there yields nothing of the pages before.
    const size_t rest = std::min<size_t>(size - done, 4096 - (address + done) % 4096);
    iovec ours = {bytes.data() + done, rest};
    iovec theirs = {reinterpret_cast<void *>(address + done), rest};
    const ssize_t got = process_vm_readv(static_cast<pid_t>(pid), &ours, 1, &theirs, 1, 0);
    if (got <= 0)
      break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::vector<std::string> status_words(uint32_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(stat, line);
  std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  return {std::istream_iterator<std::string>(rest), {}};
}

} // namespace values
