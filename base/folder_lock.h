// A folder that one process alone writes to: locked by itself, so that no file is left behind, and given up when the
// process ends in whatever way.
#pragma once

#include <string>
#include <utility>

namespace base {

class FolderLock {
public:
  FolderLock() = default;
  // Throws base::Failure, a sentence, if it cannot be written, or if another process has the lock.
  explicit FolderLock(const std::string &folder);
  FolderLock(FolderLock &&other) noexcept : open_(std::exchange(other.open_, -1)) {}
  FolderLock &operator=(FolderLock &&other) noexcept {
    std::swap(open_, other.open_);
    return *this;
  }
  ~FolderLock();

  // Whether the path still leads to the folder that was locked.
  bool is_of(const std::string &folder) const;

private:
  int open_ = -1;
};

} // namespace base
