#include "base/folder_lock.h"

#include "base/fail.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace base {

FolderLock::FolderLock(const std::string &folder) : FolderLock() { // so that a failure closes it
  open_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (open_ < 0 || access(folder.c_str(), W_OK) != 0)
    fail("{}: this folder cannot be written: {}; choose another one with -o", folder,
         std::strerror(errno));
  if (flock(open_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail("{}: another recording writes to this folder; end it, or choose another one with -o",
         folder);
}

FolderLock::~FolderLock() {
  if (open_ >= 0)
    close(open_);
}

bool FolderLock::is_of(const std::string &folder) const {
  struct stat there = {}, held = {};
  return stat(folder.c_str(), &there) == 0 && fstat(open_, &held) == 0 &&
         there.st_dev == held.st_dev && there.st_ino == held.st_ino;
}

} // namespace base
