// Memory that a command shares with the program that it runs.
#pragma once

#include <cstddef>
#include <string>

namespace base {

class SharedMemory {
public:
  // Zeros, of which only what is written takes memory. `name` is shown in lists of mappings. Throws
  // Failure where the system gives none.
  SharedMemory(const char *name, size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;

  std::byte *data() const { return data_; }
  // What the program opens and maps; there as long as this object.
  std::string path() const;

private:
  int file_ = -1;
  size_t bytes_;
  std::byte *data_ = nullptr;
};

// Of a word that another process reads and writes, too.
template <class T> T load_shared(const T &word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <class T> void store_shared(T &word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

} // namespace base
