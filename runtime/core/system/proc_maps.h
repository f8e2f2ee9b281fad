// The maps file of this process, line by line, without libc.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/core/system/message.h"
#include "runtime/core/system/syscall.h"

namespace assay {

struct MapsLine {
  uint64_t start, end, offset;
  bool executable;
  const char *path; // into the reader's buffer, until the next line; "" if none
  bool is_stack() const { return equal(path, "[stack]", 8); }
};

// One at a time: it holds a lock, and its buffers are not on the stack, because it is used in signal handlers on
// stacks of a few kilobytes. Inside a ReentrancyGuard section.
class MapsReader {
public:
  MapsReader();
  ~MapsReader();
  MapsReader(const MapsReader &) = delete;
  MapsReader &operator=(const MapsReader &) = delete;
  bool next(MapsLine &line);

private:
  bool read_text_line();
  long file_;
  uint64_t offset_ = 0; // in the file
  size_t begin_ = 0, end_ = 0;
};

} // namespace assay
