// Lines look like: 55e0a000-55e0b000 r-xp 00001000 fe:00 1234    /usr/bin/true
//
// The text is read by pread at an offset of the reader's own, so the position of the descriptor
// does not matter. A line that is longer than its buffer is cut, which can only hit its path. In
// the child of a fork the lock is reset: the thread that held it may not exist there.

#include "runtime/core/system/proc_maps.h"

#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/own_files.h"

namespace assay {
namespace {

struct {
  SpinLock lock; // held by the reader
  char data[4096];
  char line[1280];
} constinit text = {};

uint64_t read_hex(const char *&p) {
  uint64_t n = 0;
  for (;; p++) {
    if (*p >= '0' && *p <= '9')
      n = n * 16 + (uint64_t)(*p - '0');
    else if (*p >= 'a' && *p <= 'f')
      n = n * 16 + (uint64_t)(*p - 'a' + 10);
    else
      return n;
  }
}

void skip_field(const char *&p) {
  while (*p && *p != ' ')
    p++;
  while (*p == ' ')
    p++;
}

} // namespace

MapsReader::MapsReader() {
  text.lock.lock();
  file_ = maps_file.descriptor();
}

MapsReader::~MapsReader() {
  text.lock.unlock();
}

bool MapsReader::read_text_line() {
  if (file_ < 0)
    return false;
  for (size_t n = 0;;) {
    if (begin_ == end_) {
      long got = sys::call(SYS_pread64, file_, (long)text.data, sizeof text.data, (long)offset_);
      if (got <= 0)
        return false;
      offset_ += (uint64_t)got;
      begin_ = 0;
      end_ = (size_t)got;
    }
    char c = text.data[begin_++];
    if (c == '\n') {
      text.line[n] = 0;
      return true;
    }
    if (n + 1 < sizeof text.line)
      text.line[n++] = c;
  }
}

static void reset_maps_in_child() {
  text.lock.reset();
}
ASSAY_RESET_IN_CHILD(reset_maps_in_child);

bool MapsReader::next(MapsLine &line) {
  if (!read_text_line())
    return false;
  const char *p = text.line;
  line.start = read_hex(p);
  p++;
  line.end = read_hex(p);
  skip_field(p);
  line.executable = p[0] && p[1] && p[2] == 'x';
  skip_field(p);
  line.offset = read_hex(p);
  skip_field(p);
  skip_field(p);
  skip_field(p);
  line.path = p;
  return true;
}

} // namespace assay
