// Opening /proc files at each use was refused: it fails after setuid or chroot, takes the lowest free
// descriptor number for a moment, and a program that calls dup2 onto that number at that moment loses its file
// to our close.

#include "runtime/core/system/own_files.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/thread.h"

namespace assay {
int OwnDescriptor::current_table() {
  return this_thread.has_own_table ? 1 : 0;
}

void OwnDescriptor::adopt(long descriptor) {
  long &number = numbers_[current_table()];
  number = move_high(descriptor);
  identities_[current_table()] = identity_of(number);
}

long OwnDescriptor::number() const {
  long number = numbers_[current_table()];
  return number >= 0 && identity_of(number) == identity() ? number : -1;
}

void OwnDescriptor::close() {
  if (long open = number(); open >= 0)
    sys::close(open);
  numbers_[current_table()] = -1;
}

void OwnDescriptor::reset_in_child() {
  close();
  numbers_[1] = -1;
}

void OwnDescriptor::copy_to_helper() {
  numbers_[1] = numbers_[0];
  identities_[1] = identities_[0];
}

constinit ProcFile pagemap_file("/proc/thread-self/pagemap");
constinit ProcFile maps_file("/proc/thread-self/maps");
constinit ProcFile stat_file("/proc/self/stat");

namespace {

ProcFile *const kProcFiles[] = {&pagemap_file, &maps_file, &stat_file};

// What a program can give up, and with it the right to open these files.
struct Rights {
  uint64_t root_device, root_inode;
  long user, dumpable;
  bool operator==(const Rights &) const = default;
};
constinit Rights rights_at_fork = {};

Rights rights_now() {
  constexpr int kGetDumpable = 3; // PR_GET_DUMPABLE
  struct stat root = {};
  sys::call(SYS_newfstatat, AT_FDCWD, (long)"/", (long)&root);
  return {root.st_dev, root.st_ino, sys::call(SYS_geteuid), sys::call(SYS_prctl, kGetDumpable)};
}

} // namespace

long move_high(long descriptor) {
  // A table of descriptors reaches to the highest one, and each fork copies it: not higher than the usual limit.
  constexpr uint64_t kRoom = 32, kMax = 1024;
  rlimit limit = {1024, 1024};
  sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit);
  uint64_t top = limit.rlim_cur < kMax ? limit.rlim_cur : kMax;
  if (top <= 16)
    return descriptor;
  long high = sys::call(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC,
                        (long)(top > 2 * kRoom ? top - kRoom : top - 8));
  if (sys::failed(high))
    return descriptor;
  sys::close(descriptor);
  return high;
}

long ProcFile::descriptor() {
  if (long known = own_.number(); known >= 0)
    return known;
  long opened = sys::open(path_, O_RDONLY);
  if (sys::failed(opened))
    return opened;
  own_.adopt(opened);
  return own_.number();
}

void ProcFile::reset_in_child() {
  own_.reset_in_child();
}

void open_proc_files() {
  for (ProcFile *file : kProcFiles)
    file->descriptor();
}

void reset_proc_files_in_child() {
  for (ProcFile *file : kProcFiles)
    file->reset_in_child();
  rights_at_fork = rights_now();
}

bool has_lost_rights_since_fork() {
  return !(rights_now() == rights_at_fork);
}

void leave_descriptor_table() {
  constexpr long kUnshare = 2; // CLOSE_RANGE_UNSHARE, Linux 5.9
  constexpr int kFiles = 1 + sizeof(kProcFiles) / sizeof(*kProcFiles);
  OwnDescriptor *own[kFiles] = {&runtime.file.own_descriptor()};
  for (int i = 1; i < kFiles; i++)
    own[i] = &kProcFiles[i - 1]->own_descriptor();
  long numbers[kFiles];
  for (int i = 0; i < kFiles; i++)
    numbers[i] = own[i]->number();
  // Closes all but our numbers, in ascending order. What the program has open may not stay open here: a copy
  // of the writing end of a pipe would keep its reader waiting for ever.
  long flags = kUnshare;
  for (long from = 0; from <= INT32_MAX;) {
    long next = INT32_MAX + 1L;
    for (long number : numbers)
      if (number >= from && number < next)
        next = number;
    if (next > from && sys::failed(sys::call(SYS_close_range, from, next - 1, flags)))
      return;
    flags = 0;
    from = next + 1;
  }
  for (OwnDescriptor *file : own)
    file->copy_to_helper();
  this_thread.has_own_table = true;
}

long borrow_from_program(long descriptor) {
  long process = sys::call(SYS_pidfd_open, sys::process_id(), 0);
  if (sys::failed(process))
    return process;
  long copy = sys::call(SYS_pidfd_getfd, process, descriptor, 0);
  sys::close(process);
  return copy;
}

} // namespace assay
