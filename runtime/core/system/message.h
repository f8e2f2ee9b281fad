// Text without libc: what the runtime says on standard error, and the paths that it builds.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace assay {

// A bounded string on the stack. What does not fit is cut; full() tells.
class Text {
public:
  Text &add(const char *s);
  Text &add(const char *s, size_t n);
  Text &add(char c);
  Text &add_number(uint64_t n, int at_least_digits = 1);
  const char *c_str() const { return data_; }
  size_t size() const { return size_; }
  bool full() const { return full_; }
  void clear() { size_ = 0, full_ = false, data_[0] = 0; }

private:
  size_t size_ = 0;
  bool full_ = false;
  char data_[1024] = {};
};

// What descriptor 2 is at the start is standard error.
void note_standard_error();

// "assay: TEXT\n" on standard error, in one write. Nothing, if descriptor 2 is another file by now: it may be
// one that the program writes its data to.
void say(const char *text);

inline size_t length_of(const char *s) {
  size_t n = 0;
  while (s[n])
    n++;
  return n;
}
inline bool equal(const char *a, const char *b, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (a[i] != b[i])
      return false;
  return true;
}

} // namespace assay
