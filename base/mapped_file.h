// A file as bytes in memory, read-only.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace base {

// Maps a whole regular file. The constructor throws Failure, one sentence, when the file is
// missing, is not a regular file, cannot be read, or is empty. The bytes live as long as the
// object. Of a file that is shortened meanwhile, as a program is by who copies another one over it,
// what is gone reads as zeros.
class MappedFile {
public:
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&) = delete;

  const std::string &path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // What was read so far leaves the process's memory. What is read again comes from the file, or
  // the kernel's copy of it.
  void release_pages() const;

private:
  std::string path_;
  const std::byte *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace base
