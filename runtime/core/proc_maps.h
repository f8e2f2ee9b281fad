// The maps file of this process, line by line, without libc. By way of thread-self: where main has
// ended by pthread_exit, /proc/self is a zombie without memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/core/message.h"
#include "runtime/core/syscall.h"

namespace assay {

struct MapsLine {
  uint64_t start, end, offset;
  bool executable;
  const char *path; // into the reader's buffer, until the next line; "" if none
  bool is_stack() const { return equal(path, "[stack]", 8); }
};

class MapsReader {
public:
  MapsReader() : fd_(sys::open("/proc/thread-self/maps", O_RDONLY)) {}
  ~MapsReader() {
    if (fd_ >= 0)
      sys::close(fd_);
  }
  MapsReader(const MapsReader &) = delete;
  MapsReader &operator=(const MapsReader &) = delete;
  bool next(MapsLine &line);

private:
  bool read_text_line();
  long fd_;
  size_t begin_ = 0, end_ = 0;
  char data_[4096];
  char line_[1280];
};

} // namespace assay
