// Which file a descriptor means: programs close descriptors that they did not open, and the number may
// then be a file of theirs.
#pragma once

#include <sys/stat.h>

#include "runtime/core/system/syscall.h"

namespace assay {

struct FileIdentity {
  bool is_open;
  uint64_t device, inode;
  bool operator==(const FileIdentity &) const = default;
};

inline FileIdentity identity_of(long descriptor) {
  struct stat status;
  if (sys::failed(sys::call(SYS_fstat, descriptor, (long)&status)))
    return {};
  return {true, status.st_dev, status.st_ino};
}

} // namespace assay
