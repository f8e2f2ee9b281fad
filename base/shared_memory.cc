#include "base/shared_memory.h"

#include "base/fail.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace base {

SharedMemory::SharedMemory(const char *name, size_t bytes)
    : file_(memfd_create(name, MFD_CLOEXEC)), bytes_(bytes) {
  auto refuse = [this](const char *what, const char *remedy) {
    const int error = errno;
    if (file_ >= 0)
      close(file_);
    fail("the memory that is shared with the program cannot be {}: {}; raise {}", what,
         std::strerror(error), remedy);
  };
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0)
    refuse("made", "`ulimit -f` and `ulimit -n`");
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (mapped == MAP_FAILED)
    refuse("mapped", "`ulimit -v`");
  data_ = static_cast<std::byte *>(mapped);
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
  close(file_);
}

std::string SharedMemory::path() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), file_);
}

} // namespace base
