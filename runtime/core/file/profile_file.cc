// The file stays open at a high descriptor number, where it does not shift the numbers that the
// program gets. Programs close descriptors that they did not open (daemons do), and the number may
// then be a file of theirs: so before each write the descriptor must still be the inode that we
// made; otherwise the file is opened again. Where it cannot be (the program has another root or
// user by now), the helper thread has it open still, in its own table: what there is waits for its
// next flush. So it does where a write fails, because a disk that is full may have room later.
// Where 16 MiB wait, no more is taken: what waits is written when there is room, and a loss behind
// it. The program goes on.

#include "runtime/core/file/profile_file.h"

#include <errno.h>
#include <sys/resource.h>

#include "abi/version.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/options.h"
#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

constexpr long kExists = -17; // EEXIST

constinit ProfileFile replacement; // of the one caller of replace()

// YYYYMMDD-HHMMSS, UTC. Days to civil date by the method of Howard Hinnant's "chrono-Compatible
// Low-Level Date Algorithms", section civil_from_days.
void add_time(Text &out, uint64_t unix_seconds) {
  uint64_t seconds = unix_seconds % 86400, days = unix_seconds / 86400 + 719468;
  uint64_t era = days / 146097, day_of_era = days % 146097;
  uint64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  uint64_t shifted_month = (5 * day_of_year + 2) / 153;
  uint64_t day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
  uint64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  uint64_t year = year_of_era + era * 400 + (month <= 2);
  out.add_number(year, 4).add_number(month, 2).add_number(day, 2).add('-');
  out.add_number(seconds / 3600, 2).add_number(seconds / 60 % 60, 2).add_number(seconds % 60, 2);
}

// 0, or the error that stands in the way: of the outermost folder that could not be made.
long make_folders(const Text &path) {
  Text part;
  long first_error = 0;
  auto make = [&] {
    long made = sys::mkdir(part.c_str(), 0777);
    bool failed = sys::failed(made) && made != kExists;
    if (failed && !first_error)
      first_error = made;
    return !failed;
  };
  for (size_t i = 0; i < path.size(); i++) {
    if (path.c_str()[i] == '/' && i > 0)
      make();
    part.add(path.c_str()[i]);
  }
  return make() ? 0 : first_error;
}

const char *words_of(long error) {
  switch (-error) {
  case EACCES: return "permission denied, ";
  case ENOENT: return "a folder of it does not exist, ";
  case ENOTDIR: return "a part of it is not a folder, ";
  case ENOSPC: return "no space left, ";
  case EROFS: return "read-only, ";
  case EMFILE: return "no descriptor left, ";
  default: return "";
  }
}

const char *base_name(const char *path) {
  const char *name = path;
  for (; *path; path++)
    if (*path == '/')
      name = path + 1;
  return *name ? name : "program";
}

constexpr const char *kOtherPlace =
    "), so this run is not recorded; choose another place with ASSAY_OPTIONS=dir=DIR";
constexpr const char *kLostRights =
    "), so this process is not recorded; the run's folder was there when the run began: leave it "
    "there, let the user that this process runs as write into it, or fork before the program "
    "gives up rights or changes its root";

void complain(const char *what, const Text &path, long error, const char *advice) {
  Text text;
  text.add(what).add(" ").add(path.c_str()).add(" (").add(words_of(error));
  const bool is_of_rights = error == -EACCES || error == -EPERM || error == -ENOENT;
  text.add("error ").add_number((uint64_t)-error).add(is_of_rights ? advice : kOtherPlace);
  say(text.c_str());
}

} // namespace

bool ProfileFile::adopt(long descriptor) {
  own_.adopt(descriptor);
  identity_ = own_.identity();
  is_open_ = identity_.is_open;
  return is_open_;
}

// In the calling thread's table. Where the program has closed it, or a thread of the other table has put a
// shorter file in the place, it is opened again.
long ProfileFile::descriptor() {
  if (long known = own_.number(); known >= 0 && own_.identity() == identity_)
    return known;
  own_.close();
  long opened = sys::open(path_.c_str(), O_RDWR | O_APPEND);
  if (sys::failed(opened))
    return opened;
  if (identity_of(opened) != identity_) {
    sys::close(opened);
    return -1;
  }
  own_.adopt(opened);
  return own_.number();
}

// A program may become itself again by exec, with the same pid: then a number is added to the name.
bool ProfileFile::create(const char *advice) {
  Text stem;
  stem.add(path_.c_str());
  for (uint64_t n = 1;; n++) {
    path_.clear();
    path_.add(stem.c_str());
    if (n > 1)
      path_.add('.').add_number(n);
    live_path_.clear();
    live_path_.add(path_.c_str()).add(".live");
    path_.add(".assay");
    if (path_.full() || live_path_.full()) {
      say("the path of the profile is longer than 1,000 bytes, so this run is not recorded; choose "
          "a shorter place with ASSAY_OPTIONS=dir=DIR");
      return false;
    }
    long descriptor = sys::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL, 0666);
    if (!sys::failed(descriptor))
      return adopt(descriptor);
    if (descriptor != kExists || n == 1000) {
      complain("cannot create", path_, descriptor, advice);
      return false;
    }
  }
}

bool ProfileFile::start(const char *program, const char *advice) {
  path_.clear();
  path_.add(run_folder_.c_str()).add('/').add(program).add('.').add_number(sys::process_id());
  if (!buffer_)
    buffer_ = (char *)reserve(kMaxKept);
  if (!buffer_ || !create(advice))
    return false;
  AssayFileHeader header = {};
  __builtin_memcpy(header.magic, ASSAY_FILE_MAGIC, sizeof header.magic);
  header.version = ASSAY_ABI_VERSION;
  header.header_size = sizeof header;
  header.kind = ASSAY_FILE_PROFILE;
  header.pid = sys::process_id();
  header.start_unix_ns = sys::clock_ns(CLOCK_REALTIME);
  header.checksum = assay_checksum(&header, offsetof(AssayFileHeader, checksum), 0);
  put(&header, sizeof header);
  return true;
}

bool ProfileFile::open_in_same_run(const char *executable) {
  return start(base_name(executable), kLostRights);
}

bool ProfileFile::open(OptionText dir_pattern, OptionText run, const char *executable) {
  const char *program = base_name(executable);
  Text dir;
  expand_pattern(dir_pattern, program, dir);
  run_folder_.clear();
  if (dir.c_str()[0] != '/') {
    char here[512];
    long n = sys::call(SYS_getcwd, (long)here, sizeof here);
    if (n > 1 && here[0] == '/')
      run_folder_.add(here, (size_t)n - 1).add('/');
  }
  run_folder_.add(dir.c_str()).add('/');
  if (!run.empty()) {
    expand_pattern(run, program, run_folder_);
  } else {
    add_time(run_folder_, sys::clock_ns(CLOCK_REALTIME) / 1000000000);
    run_folder_.add('-').add(program).add('.').add_number(sys::process_id());
  }
  if (long error = make_folders(run_folder_)) {
    complain("cannot create the folder", run_folder_, error, kOtherPlace);
    return false;
  }
  return start(program, kOtherPlace);
}

// How many bytes of the buffer were written.
size_t ProfileFile::write_to(long descriptor, size_t size) {
  size_t done = 0;
  while (done < size) {
    long n = sys::write(descriptor, buffer_ + done, size - done);
    if (n == -EINTR)
      continue;
    if (n <= 0)
      break;
    done += (size_t)n;
  }
  return done;
}

// The buffer begins with what was not written.
void ProfileFile::keep_from(size_t done) {
  used_ -= done;
  if (done)
    __builtin_memmove(buffer_, buffer_ + done, used_);
  write_at_ = used_ + kBufferBytes;
}

// The buffer is empty afterwards, or has room for kBufferBytes: a record may be longer than that.
void ProfileFile::write_out() {
  const size_t size = used_;
  if (size == 0 || failed_ || !is_open_) {
    used_ = 0;
    return;
  }
  const bool is_short_enough = bytes_ + size <= sys::file_size_limit();
  const long to = is_short_enough ? descriptor() : -1;
  const size_t done = to >= 0 ? write_to(to, size) : 0;
  bytes_ += done;
  if (done < size && !ends_ && size + kBufferBytes <= kMaxKept &&
      (to >= 0 || (is_short_enough && own_.is_open_for_helper_alone()))) {
    if (to >= 0)
      say_loss(ASSAY_LOSS_write_failed);
    keep_from(done);
    return;
  }
  used_ = 0;
  write_at_ = kBufferBytes;
  if (size > kBufferBytes)
    empty_span(buffer_ + kBufferBytes, kMaxKept - kBufferBytes);
  if (done < size) {
    failed_ = true;
    if (this != &replacement) // else the file stays as it is
      count_loss(ASSAY_LOSS_write_failed, 1);
  }
}

void ProfileFile::put(const void *data, size_t size) {
  const char *p = (const char *)data;
  while (size) {
    if (used_ == write_at_)
      write_out();
    size_t room = write_at_ - used_, part = size < room ? size : room;
    __builtin_memcpy(buffer_ + used_, p, part);
    used_ += part;
    p += part;
    size -= part;
  }
}

void ProfileFile::append_record(uint32_t kind, const void *fixed, size_t fixed_size,
                                const void *tail, size_t tail_size) {
  if (!is_open())
    return;
  if (failed_ || fixed_size + tail_size > ASSAY_RECORD_MAX) {
    if (this != &replacement)
      count_loss_quietly(ASSAY_LOSS_write_failed, 1);
    return;
  }
  Locked locked(lock_);
  if (!may_take(fixed_size + tail_size)) {
    refused_++;
    return;
  }
  if (!put_sparse(kind, fixed, fixed_size, tail, tail_size))
    put_record(kind, fixed, fixed_size, tail, tail_size);
}

// What others refer to must be in the file, so from the first record that is not taken on there is none.
bool ProfileFile::may_take(size_t size) {
  constexpr size_t kAround = 2 * kBufferBytes; // header, padding, and what is written at once
  if (is_closed_ || !is_behind() || used_ + size + kAround <= kMaxKept)
    return !is_closed_;
  write_out();
  is_closed_ = !failed_ && is_behind() && used_ + size + kAround > kMaxKept;
  if (is_closed_)
    say("16 MiB of the profile wait for room on the disk; what comes from now on is not recorded");
  return !is_closed_;
}

bool ProfileFile::has_failed() {
  Locked locked(lock_);
  return lacks_something();
}

void ProfileFile::copy(const FileRecord &r) {
  if (!is_open() || failed_)
    return;
  Locked locked(lock_);
  put_record(r.header.kind | (r.is_sparse ? ASSAY_RECORD_SPARSE : 0), r.fixed, r.header.fixed_size,
             r.tail, r.tail_size);
}

void ProfileFile::put_record(uint32_t kind, const void *fixed, size_t fixed_size, const void *tail,
                             size_t tail_size) {
  AssayRecordHeader header = {kind, 0, (uint32_t)(fixed_size + tail_size), (uint32_t)fixed_size};
  header.checksum = assay_record_checksum(&header, fixed, tail);
  put(&header, sizeof header);
  put(fixed, fixed_size);
  put(tail, tail_size);
  put("\0\0\0\0\0\0\0", assay_padding(header.length));
}

// Where the fixed part is long and mostly zeros. It is made in the buffer: the stack may be a small one.
bool ProfileFile::put_sparse(uint32_t kind, const void *fixed, size_t fixed_size, const void *tail,
                             size_t tail_size) {
  if (fixed_size < ASSAY_SPARSE_MIN || fixed_size > ASSAY_SPARSE_MAX)
    return false;
  static_assert(kBufferBytes > sizeof(AssayRecordHeader) + 2 * ASSAY_SPARSE_MAX);
  if (used_ + sizeof(AssayRecordHeader) + assay_sparse_room(fixed_size) > write_at_)
    write_out();
  char *to = buffer_ + used_ + sizeof(AssayRecordHeader);
  const size_t stored = assay_make_sparse(fixed, fixed_size, to);
  if (!stored)
    return false;
  AssayRecordHeader header = {kind | ASSAY_RECORD_SPARSE, 0, (uint32_t)(stored + tail_size),
                              (uint32_t)stored};
  header.checksum = assay_record_checksum(&header, to, tail);
  put(&header, sizeof header);
  used_ += stored;
  put(tail, tail_size);
  put("\0\0\0\0\0\0\0", assay_padding(header.length));
  return true;
}

void ProfileFile::flush() {
  Locked locked(lock_);
  write_out();
  if (!refused_ || used_ || failed_)
    return;
  const AssayLoss loss = {ASSAY_LOSS_write_failed, refused_};
  put_record(ASSAY_RECORD_Loss, &loss, sizeof loss, nullptr, 0);
  refused_ = 0;
  write_out();
}

// A file without a name, so that nothing is left over when the program is killed now; where the file system
// has no such files, one with a name. The file header stays: the replacement begins with a copy of it.
bool ProfileFile::open_replacement(const ProfileFile &old) {
  path_.clear();
  path_.add(old.path()).add(".new");
  if (!buffer_)
    buffer_ = (char *)reserve(kMaxKept);
  if (!buffer_ || path_.full())
    return false;
  long descriptor = sys::open(old.run_folder_.c_str(), O_RDWR | O_APPEND | O_TMPFILE, 0666);
  named_ = sys::failed(descriptor);
  if (named_) {
    sys::unlink(path_.c_str());
    descriptor = sys::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL, 0666);
  }
  used_ = 0;
  write_at_ = kBufferBytes;
  bytes_ = 0;
  failed_ = false;
  ends_ = true;
  return !sys::failed(descriptor) && adopt(descriptor);
}

// The replacement takes the place of the file at path.
bool ProfileFile::publish_replacement(const char *path) {
  if (!named_) {
    Text self;
    self.add("/proc/thread-self/fd/").add_number((uint64_t)own_.number());
    sys::unlink(path_.c_str()); // of an earlier process that was killed here
    if (sys::failed(sys::call(SYS_linkat, AT_FDCWD, (long)self.c_str(), AT_FDCWD,
                              (long)path_.c_str(), AT_SYMLINK_FOLLOW)))
      return false;
    named_ = true;
  }
  return !sys::failed(
      sys::call(SYS_renameat2, AT_FDCWD, (long)path_.c_str(), AT_FDCWD, (long)path, 0));
}

bool ProfileFile::copy_from(long descriptor, uint64_t begin, uint64_t end) {
  char piece[4096];
  while (begin < end) {
    uint64_t wanted = end - begin < sizeof piece ? end - begin : sizeof piece;
    long n = sys::call(SYS_pread64, descriptor, (long)piece, (long)wanted, (long)begin);
    if (n <= 0)
      return false;
    put(piece, (size_t)n);
    begin += (uint64_t)n;
  }
  return true;
}

uint64_t ProfileFile::replace(Rewrite rewrite) {
  ProfileFile &fresh = replacement;
  uint64_t size, rewritten = 0;
  bool lacks = false;
  {
    Locked locked(lock_);
    write_out();
    size = bytes_;
    lacks = lacks_something();
  }
  long old = lacks ? -1 : descriptor();
  if (sys::failed(old))
    return 0;
  long mapped = sys::map(nullptr, size, PROT_READ, MAP_PRIVATE, old);
  bool good = !sys::failed(mapped) && fresh.open_replacement(*this);
  if (good) {
    const uint8_t *from = (const uint8_t *)mapped;
    fresh.put(from, sizeof(AssayFileHeader));
    good = rewrite(from + sizeof(AssayFileHeader), size - sizeof(AssayFileHeader), fresh);
    rewritten = fresh.bytes_ + fresh.used_;
  }
  if (good) {
    Locked locked(lock_);
    write_out();
    old = lacks_something() ? -1 : descriptor();
    good = old >= 0 && fresh.copy_from(old, size, bytes_);
    fresh.write_out();
    good = good && !fresh.failed_ && fresh.publish_replacement(path_.c_str());
    if (good) {
      own_.close();
      own_.adopt(fresh.own_.number());
      identity_ = fresh.identity_;
      bytes_ = fresh.bytes_;
      fresh.own_.reset();
      fresh.is_open_ = false;
    }
  }
  if (fresh.is_open_) {
    fresh.own_.close();
    fresh.is_open_ = false;
    if (fresh.named_)
      sys::unlink(fresh.path());
  }
  if (!sys::failed(mapped))
    sys::unmap((void *)mapped, size);
  return good ? rewritten : 0;
}

void ProfileFile::reset_in_child() {
  lock_.reset();
  own_.reset_in_child();
  is_open_ = false;
  if (write_at_ > kBufferBytes)
    empty_span(buffer_ + kBufferBytes, kMaxKept - kBufferBytes);
  used_ = 0;
  write_at_ = kBufferBytes;
  bytes_ = 0;
  failed_ = ends_ = is_closed_ = false;
  refused_ = 0;
  if (this != &replacement) // which another thread may have been writing
    replacement.reset_in_child();
}

} // namespace assay
