// A file that is replaced whole or not at all: what is written goes beside it, and takes its place
// at the end, with its mode; of a link, the place of the file that it leads to. A device or a pipe is written
// into. Or one that grows: what was written is there, whatever happens.
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

namespace base {

enum class Written : unsigned char { whole, as_it_grows };

// What helps where writing failed with this errno.
const char *remedy_for_writing(int error);

class OutputFile {
public:
  // "-" is standard output. Throws Failure if it cannot be opened.
  explicit OutputFile(const std::string &path, Written written = Written::whole);
  ~OutputFile(); // what was not committed is removed
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  // Throw Failure if the bytes cannot be written.
  void write(std::span<const std::byte> bytes);
  void flush();
  void commit();

private:
  [[noreturn]] void fail_to_write(int error) const;

  std::string path_, target_, written_to_;
  bool in_place_;
  std::FILE *file_;
};

} // namespace base
