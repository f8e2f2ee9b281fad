// A reader must never find half a file, and a command that fails must not destroy the file of an
// earlier run. So the bytes go to NAME.PID.part, and commit() renames that. It lies in the same
// folder, because a rename works only within one file system; it has the process's number, because
// two commands may write the same file. A link to a file is followed first: otherwise the rename
// would replace the link.
//
// The bytes are not forced to the disk (fsync): if the machine itself stops soon afterwards, the
// file may be incomplete.

#include "base/output_file.h"

#include "base/fail.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace base {

const char *remedy_for_writing(int error) {
  if (error == EFBIG) // by a limit, or the file system's own
    return "raise `ulimit -f`, or choose another place";
  return error == ENOSPC || error == EDQUOT ? "free some space or choose another place"
                                            : "choose another place";
}

OutputFile::OutputFile(const std::string &path, Written written) : path_(path) {
  std::error_code ignored;
  std::filesystem::path target = path == "-" ? "/dev/stdout" : path;
  if (std::filesystem::is_symlink(target, ignored) &&
      std::filesystem::is_regular_file(target, ignored))
    target = std::filesystem::canonical(target, ignored);
  in_place_ = path == "-" || written == Written::as_it_grows ||
              (std::filesystem::exists(target, ignored) &&
               !std::filesystem::is_regular_file(target, ignored));
  target_ = target.string();
  written_to_ = in_place_ ? target_ : fmt::format("{}.{}.part", target_, getpid());
  file_ = std::fopen(written_to_.c_str(), "wbe");
  if (!file_)
    fail_to_write(errno);
  // What takes a file's place may be read by those who might read that one.
  if (struct stat before; !in_place_ && stat(target_.c_str(), &before) == 0) {
    [[maybe_unused]] const int refused = fchown(fileno(file_), before.st_uid, before.st_gid);
    fchmod(fileno(file_), before.st_mode & 0777);
  }
}

OutputFile::~OutputFile() {
  if (!file_)
    return;
  std::fclose(file_);
  if (!in_place_)
    std::remove(written_to_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
    fail_to_write(errno);
}

void OutputFile::flush() {
  if (std::fflush(file_) != 0)
    fail_to_write(errno);
}

void OutputFile::commit() {
  bool closed = std::fclose(file_) == 0;
  int error = errno;
  file_ = nullptr;
  if (closed && (in_place_ || std::rename(written_to_.c_str(), target_.c_str()) == 0))
    return;
  if (closed)
    error = errno;
  if (!in_place_)
    std::remove(written_to_.c_str());
  fail_to_write(error);
}

void OutputFile::fail_to_write(int error) const {
  fail("{}: it cannot be written: {}; {}", path_, std::strerror(error), remedy_for_writing(error));
}

} // namespace base
