// What is mapped in a process, as /proc says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

// A path by which the mapped file can be opened, also if it was deleted or lies in another mount namespace.
std::string path_of_mapping(uint32_t pid, const MappedRange &range);

// As many bytes of the process's memory as can be read there, at most `size`.
std::vector<std::byte> process_memory(uint32_t pid, uint64_t address, size_t size);

} // namespace values
