// Mapping a file, with an error message for each way in which that goes wrong.
//
// A profile can be large and most of it is read once, front to back: mapping lets the kernel read
// ahead and drop what was read. Reading into a buffer was refused: it doubles the memory at the
// peak. What lies behind the end of a file that has shrunk faults (SIGBUS): then the handler puts a
// page of zeros there. It finds the mappings in a table that needs no lock.

#include "base/mapped_file.h"

#include "base/fail.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace base {
namespace {

struct Mapped {
  std::atomic<uintptr_t> begin{0}; // 0: free
  std::atomic<size_t> size{0};
};
constinit std::array<Mapped, 1024> all_mapped; // of more, none is watched

const Mapped *mapped_at(uintptr_t address) {
  for (const Mapped &each : all_mapped)
    if (const uintptr_t begin = each.begin.load(std::memory_order_acquire);
        begin && address - begin < each.size.load(std::memory_order_relaxed))
      return &each;
  return nullptr;
}

void on_bus_error(int signal, siginfo_t *info, void *) {
  constexpr uintptr_t kPage = 4096;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const int error = errno;
  if (!mapped_at(address) ||
      mmap(reinterpret_cast<void *>(address / kPage * kPage), kPage, PROT_READ,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    std::signal(signal, SIG_DFL); // it comes again
  errno = error;
}

void watch(const void *begin, size_t size) {
  static const bool is_set = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    return sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  if (!is_set)
    return;
  for (Mapped &each : all_mapped)
    if (uintptr_t free = 0; each.begin.compare_exchange_strong(free, UINTPTR_MAX)) {
      each.size.store(size, std::memory_order_relaxed);
      each.begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_release);
      return;
    }
}

void watch_no_more(const void *begin) {
  for (Mapped &each : all_mapped)
    if (each.begin.load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(begin)) {
      each.size.store(0, std::memory_order_relaxed);
      each.begin.store(0, std::memory_order_release);
      return;
    }
}

} // namespace

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
  watch(data_, size_);
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

void MappedFile::release_pages() const {
  madvise(const_cast<std::byte *>(data_), size_, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (!data_)
    return;
  watch_no_more(data_);
  munmap(const_cast<std::byte *>(data_), size_);
}

} // namespace base
