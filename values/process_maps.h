// What is mapped in a process, and how it is, as /proc says.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace values {

struct MappedRange {
  uint64_t start = 0, end = 0;
  uint64_t file_offset = 0;
  uint64_t inode = 0;  // 0: no file
  uint32_t device = 0; // of the file system
  bool is_executable = false;
  std::string name; // path of a file, "[vdso]", or empty
  bool is_file() const { return !name.empty() && name.front() == '/'; }
};

// By address. Empty if the process is not there, or may not be looked at.
std::vector<MappedRange> mapped_ranges(uint32_t pid);

// The range that covers an address, or nullptr.
const MappedRange *range_at(const std::vector<MappedRange> &ranges, uint64_t address);

// What was mapped in the processes that were asked about lately.
class ProcessMaps {
public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kNow{0};

  // The range that covers an address, or nullptr, as it was at most so long ago; of a process that
  // has ended, as it was when it was last asked about. Valid until the next call.
  const MappedRange *range_at(uint32_t pid, uint64_t address, std::chrono::milliseconds max_age);

  // The same of a file, or nullptr. Where what is known has none there it is asked again, though not
  // so often that this takes more than a twentieth of the time.
  const MappedRange *file_at(uint32_t pid, uint64_t address, std::chrono::milliseconds max_age);

private:
  struct Known {
    Clock::time_point when;
    Clock::duration took{}; // to ask
    std::vector<MappedRange> ranges;
  };
  std::unordered_map<uint32_t, Known> known_; // by process
};

// A path by which the mapped file can be opened, also if it was deleted or lies in another mount namespace.
std::string path_of_mapping(uint32_t pid, const MappedRange &range);

// The words of /proc/PID/stat behind the program's name: the state first. None once the process is gone.
std::vector<std::string> status_words(uint32_t pid);

// As many bytes of the process's memory as can be read there, at most `size`.
std::vector<std::byte> process_memory(uint32_t pid, uint64_t address, size_t size);

} // namespace values
