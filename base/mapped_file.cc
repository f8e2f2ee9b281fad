// Mapping a file, with an error message for each way in which that goes wrong.
//
// A profile can be large and most of it is read once, front to back: mapping lets the kernel read
// ahead and drop what was read. Reading into a buffer was refused: it doubles the memory at the
// peak and gains nothing but safety from files that shrink, which profiles do not do.

#include "base/mapped_file.h"

#include "base/fail.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace base {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    int error = errno;
    if (error == ENOENT)
      fail("{}: there is no such file; check the name", path_);
    if (error == EACCES)
      fail("{}: it may not be read; change its permissions, or run as its owner", path_);
    fail("{}: it cannot be opened: {}", path_, std::strerror(error));
  }
  struct stat status;
  if (fstat(file, &status) != 0) {
    int error = errno;
    close(file);
    fail("{}: its size cannot be read: {}", path_, std::strerror(error));
  }
  if (S_ISDIR(status.st_mode)) {
    close(file);
    fail("{}: it is a directory; name a file in it", path_);
  }
  if (!S_ISREG(status.st_mode)) {
    close(file);
    fail("{}: it is not a regular file; copy it into one first", path_);
  }
  if (status.st_size == 0) {
    close(file);
    fail("{}: it is empty; nothing was written to it", path_);
  }
  size_ = static_cast<size_t>(status.st_size);
  void *mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  int error = errno;
  close(file);
  if (mapped == MAP_FAILED)
    fail("{}: it cannot be mapped into memory: {}", path_, std::strerror(error));
  data_ = static_cast<const std::byte *>(mapped);
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

void MappedFile::release_pages() const {
  madvise(const_cast<std::byte *>(data_), size_, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_)
    munmap(const_cast<std::byte *>(data_), size_);
}

} // namespace base
