// One write a message, so that lines of several processes do not mix.
//
// Descriptor 2 may be another file by the time that we speak: a program that closes it may get a
// file of its data there. So the file is remembered at the start by its identity, and if it is
// another one by now, nothing is said. A thread that has a table of descriptors of its own borrows
// the program's descriptor 2 for this one message.

#include "runtime/core/system/message.h"

#include "runtime/core/system/own_files.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

constinit struct {
  bool noted;
  FileIdentity file;
} standard_error = {};

} // namespace

void note_standard_error() {
  standard_error = {true, identity_of(2)};
}

Text &Text::add(char c) {
  if (size_ + 1 >= sizeof data_) {
    full_ = true;
    return *this;
  }
  data_[size_++] = c;
  data_[size_] = 0;
  return *this;
}

Text &Text::add(const char *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    add(s[i]);
  return *this;
}

Text &Text::add(const char *s) {
  return add(s, length_of(s));
}

Text &Text::add_number(uint64_t n, int at_least_digits) {
  char digits[20];
  int count = 0;
  do {
    digits[count++] = (char)('0' + n % 10);
    n /= 10;
  } while (n);
  for (int i = count; i < at_least_digits; i++)
    add('0');
  while (count)
    add(digits[--count]);
  return *this;
}

void say(const char *text) {
  constexpr int kStandardError = 2;
  long to = this_thread.has_own_table ? borrow_from_program(kStandardError) : kStandardError;
  if (!standard_error.noted || identity_of(to) == standard_error.file) {
    Text line;
    line.add("assay: ").add(text).add('\n');
    sys::write(to, line.c_str(), line.size());
  }
  if (this_thread.has_own_table && to >= 0)
    sys::close(to);
}

} // namespace assay
