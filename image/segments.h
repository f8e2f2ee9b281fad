// What the loader maps of a file, and the bytes that are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace image {

// Of data that is looked through word by word, so many bytes stay in memory: it may be most of a
// file of hundreds of MB.
constexpr uint64_t kReleasedBytes = 4 << 20;

struct Segment { // PT_LOAD
  uint64_t address = 0, size = 0, file_size = 0;
  bool readable = false, writable = false, executable = false;
  uint64_t file_offset = 0;
};

// The segments of a file by address, not overlapping, no end beyond the last address; the
// file-backed part of each lies within the file. The file's bytes are not copied.
class Segments {
public:
  Segments() = default;
  Segments(std::vector<Segment> by_address, std::span<const std::byte> file)
      : all_(std::move(by_address)), file_(file) {}

  const std::vector<Segment> &all() const { return all_; }
  // nullptr if there is none
  const Segment *at(uint64_t address) const;
  // File-backed bytes of [address, address + size); an empty span if not wholly there.
  std::span<const std::byte> bytes(uint64_t address, uint64_t size) const;
  // As many file-backed bytes as there are from `address` on within its segment.
  std::span<const std::byte> bytes_from(uint64_t address) const;

private:
  std::vector<Segment> all_;
  std::span<const std::byte> file_;
};

} // namespace image
